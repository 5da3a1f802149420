"""What chooses and tunes: buckets, prediction of shapes, the choice of the mode, the tuner."""
