"""An app with a NumPyClient."""
