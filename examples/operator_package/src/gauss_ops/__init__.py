"""The operator ``gauss::bump``: exp(-sharpness * x * x) of float32 tensors."""
