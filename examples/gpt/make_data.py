#!/usr/bin/env python3
"""Writes alice.txt as .npy files of character numbers, 64 to a sample.

Not needed to use the example: the files are in the tree. They were made with
numpy 2.4.6:

    python3 make_data.py

Number c stands for the c-th of the text's distinct characters in the order of
their code points. A sample's labels are its tokens one character later. The last
tenth of the book is the test set; the training samples are shuffled once.
"""

import pathlib

import numpy

LENGTH, SEED = 64, 7
FOLDER = pathlib.Path(__file__).resolve().parent


def samples(numbers):
    count = (len(numbers) - 1) // LENGTH
    shape = (count, LENGTH)
    return (numbers[:count * LENGTH].reshape(shape), numbers[1:count * LENGTH + 1].reshape(shape))


def main():
    text = (FOLDER / "alice.txt").read_text(encoding="utf-8")
    alphabet = sorted(set(text))
    numbers = numpy.array([alphabet.index(character) for character in text])
    border = len(numbers) * 9 // 10
    tokens, labels = samples(numbers[:border])
    order = numpy.random.default_rng(SEED).permutation(len(tokens))
    test_tokens, test_labels = samples(numbers[border:])
    for name, array in (("train-tokens", tokens[order]), ("train-labels", labels[order]),
                        ("test-tokens", test_tokens), ("test-labels", test_labels)):
        numpy.save(FOLDER / f"{name}.npy", array.astype(numpy.int32))
        print(name, array.shape)
    print(len(alphabet), "characters:", "".join(alphabet))


if __name__ == "__main__":
    main()
