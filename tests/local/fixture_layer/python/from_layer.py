"""What the layer of the tests brings."""

WHO = "layer"
