#!/usr/bin/env python3
"""Writes the handwritten digits that ship inside scikit-learn as four .npy files.

Not needed to use the example: the files are in the tree. They were made with
scikit-learn 1.9.1 and numpy 2.4.6:

    pip install scikit-learn==1.9.1 && python3 make_data.py

Pixels 0..16 become 0..1; 360 of the 1,797 images, drawn once with a fixed seed,
are the test set.
"""

import pathlib

import numpy
from sklearn.datasets import load_digits

SEED = 20240229
TEST_IMAGES = 360

folder = pathlib.Path(__file__).resolve().parent
digits = load_digits()
images = (digits.data / 16.0).astype(numpy.float32)
labels = digits.target.astype(numpy.int64)

order = numpy.random.Generator(numpy.random.PCG64(SEED)).permutation(len(images))
for name, chosen in (("test", order[:TEST_IMAGES]), ("train", order[TEST_IMAGES:])):
    numpy.save(folder / f"{name}-images.npy", images[chosen])
    numpy.save(folder / f"{name}-labels.npy", labels[chosen])
    print(name, images[chosen].shape, numpy.bincount(labels[chosen]))
