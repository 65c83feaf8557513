"""Writes arrays of every kind that clients send, and beside each its values in C order, with numpy."""

import pathlib
import sys

import numpy as np
from numpy.lib import format as npy

here = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
values = np.array([[0, 1, 2], [100, 3, 7]])
signed = np.array([[0, -1, 2], [-100, 3, 7]])


def write(name, array, version=(1, 0)):
    with open(here / f"{name}.npy", "wb") as file:
        npy.write_array(file, array, version=version, allow_pickle=False)
    with np.errstate(over="ignore"):
        text = " ".join(repr(float(x)) for x in np.ravel(array, order="C").astype(np.float32))
    (here / f"{name}.txt").write_text(text + "\n")


for kind in ["u1", "u2", "u4", "u8"]:
    write(f"little-{kind}", values.astype("<" + kind))
    write(f"big-{kind}", values.astype(">" + kind))
for kind in ["i1", "i2", "i4", "i8", "f2", "f4", "f8"]:
    write(f"little-{kind}", signed.astype("<" + kind))
    write(f"big-{kind}", signed.astype(">" + kind))
    write(f"fortran-{kind}", np.asfortranarray(signed.astype("<" + kind)))
write("bool", values > 2)
write("fortran-3d", np.asfortranarray(np.arange(24, dtype="<f4").reshape(2, 3, 4)))
write("fortran-big-3d", np.asfortranarray(np.arange(24, dtype=">f8").reshape(2, 3, 4)))
write("scalar-i8", np.array(7, dtype="<i8"))
write("scalar-f4", np.array(0.5, dtype="<f4"))
write("one", np.arange(5, dtype="<f4"))
write("empty", np.zeros((0, 3), dtype="<f4"))
write("version-2", signed.astype("<f4"), (2, 0))
write("version-3", signed.astype("<f4"), (3, 0))
special = [0.0, -0.0, 1.0, 6e-8, 6.1e-5, 65504.0, float("inf"), float("-inf"), float("nan"), 0.333]
write("half", np.array(special, dtype="<f2"))
write("double", np.array([*special, 1e300, 1e-300], dtype="<f8"))
