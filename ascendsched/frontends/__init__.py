"""Front ends: models of other formats as graphs. Each imports its format's package only when it is used."""
