"""Where in the model a calibrated update may act, and how the calibration problem is solved there."""
