"""Make the data of a member to try things with: 300 images of the built-in Fashion-MNIST, drawn at random.

python examples/flower/data.py FOLDER SEED     # from the root of the repository
"""

import gzip
import pathlib
import sys

import numpy as np

folder, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2])
source = pathlib.Path(__file__).parents[2] / "dataset" / "fashion"
images = np.frombuffer(gzip.open(source / "train-images-idx3-ubyte.gz").read(), np.uint8, offset=16).reshape(-1, 28, 28)
labels = np.frombuffer(gzip.open(source / "train-labels-idx1-ubyte.gz").read(), np.uint8, offset=8)
drawn = np.random.default_rng(seed).choice(len(images), 300, replace=False)
folder.mkdir(parents=True, exist_ok=True)
np.save(folder / "images.npy", ((images[drawn] / 255 - 0.28668) / 0.35401).astype(np.float32))  # as grange data info says
np.save(folder / "labels.npy", labels[drawn])
