"""`ascendsched bench`: a model in ascendsched and in onnxruntime, side by side on this machine."""
