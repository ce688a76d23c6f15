"""Architectures: each builds a module for given inputs and classes."""
