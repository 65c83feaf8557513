"""A Flower app that trains in a Grange federation."""
