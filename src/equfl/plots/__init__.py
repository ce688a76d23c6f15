"""Pictures: numbers in, a file out; one file, one picture. Needs the extra ``plots``."""
