"""The device ``toy``: host memory, and the operators Add, MatMul and Relu of float32 tensors."""
