"""Mutations of files: of their bytes, of the values in them, and of signed arrays and data."""

import json
import re

import numpy as np

TEXTS = [b"1e999", b"-1", b"1" + b"0" * 30, b"9" * 5000, b"NaN", b"null", b"true", b'""', b"[]", b"{}", b"[" * 20_000]
TEXTS += [b'{"a":' * 5000, b"\xff", b"\0", b"\xed\xa0\x80", b'"../../x"', b"0x7fffffff", b"a." * 100, b"\r", b"[[x]]\n"]
VALUES = [None, True, -1, 0, 2, 0.5, 1e308, 10**30, -(10**30), 2**63, 10**12, float("nan"), float("-inf"), "", "x", "nan"]
VALUES += ["../../x", "\ud800", "9" * 5000, "future=0.5", [], {}, [[]], [1, 2], ["x"], [None], {"x": 1}, {"": []}]
SIZES = [0, 1, 2, 8, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1]
DTYPES = ["u1", "i1", "i4", "i8", "f2", "f4", "f8", "b1", "u8"]
TOKEN = re.compile(rb'"[^"]*"|[-+.\w]+')


def mutated_bytes(content, rng):
    """Return bytes with one to three changes."""
    for _ in range(rng.randint(1, 3)):
        content = rng.choice(CHANGES)(content, rng)
    return content


def _flip(content, rng):
    place = rng.randrange(len(content) or 1)
    return content[:place] + bytes(b ^ (1 << rng.randrange(8)) for b in content[place : place + 1]) + content[place + 1 :]


def _cut(content, rng):
    return content[: rng.randrange(len(content) or 1)]


def _remove(content, rng):
    start = rng.randrange(len(content) or 1)
    return content[:start] + content[start + rng.choice([1, 8, 100, 5000]) :]


def _repeat(content, rng):
    start = rng.randrange(len(content) or 1)
    return content[:start] + content[start : start + rng.choice([1, 30, 1000])] * rng.randint(2, 50) + content[start:]


def _insert(content, rng):
    place = rng.randrange(len(content) + 1)
    return content[:place] + rng.choice(TEXTS) + content[place:]


def _write_size(content, rng):
    place = rng.choice([0, rng.randrange(len(content) or 1)])
    return content[:place] + rng.choice(SIZES).to_bytes(8, "little") + content[place + 8 :]


def _replace_token(content, rng):
    tokens = list(TOKEN.finditer(content[:20_000]))
    if not tokens:
        return content
    token = rng.choice(tokens)
    return content[: token.start()] + rng.choice(TEXTS) + content[token.end() :]


CHANGES = (_flip, _cut, _remove, _repeat, _insert, _write_size, _replace_token, _replace_token)


def mutated_data(data, rng):
    """Return plain data with one value replaced, removed, renamed or repeated."""
    data = json.loads(json.dumps(data))
    parents = [(parent, key) for parent, key in _places(data)]
    if not parents:
        return rng.choice(VALUES)
    parent, key = rng.choice(parents)
    change = rng.randrange(6)
    if change == 0:
        del parent[key]
    elif change == 1 and isinstance(parent, dict):
        parent[rng.choice(["x", "__class__", key + "x"])] = parent.pop(key)
    elif change == 2 and isinstance(parent, list):
        parent += parent[key : key + 1] * rng.randint(1, 500)
    elif change == 3 and isinstance(parent[key], int | float):
        parent[key] *= rng.choice([-1, 0.5, 2, 1000])
    else:
        parent[key] = rng.choice(VALUES)
    return data


def _places(data):
    """Yield the container and the key of every value in plain data."""
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        yield data, key
        if isinstance(value, dict | list):
            yield from _places(value)


def mutated_arrays(arrays, rng):
    """Return arrays of which one is changed, removed, renamed or added."""
    name = rng.choice(sorted(arrays))
    array, change = arrays[name], rng.randrange(8)
    rest = {other: array for other, array in arrays.items() if other != name}
    if change == 0:
        return rest
    if change == 1:
        return rest | {name + "x": array}
    if change == 2:
        return arrays | {"x": array}
    return rest | {name: _changed(array.copy(), change, rng)}


def _changed(array, change, rng):
    if change == 3:
        return array.astype(rng.choice(DTYPES)) if array.size else array.reshape(-1)
    if change == 4:
        return array.reshape(-1)[: rng.randrange(array.size + 1)]
    if change == 5:
        return np.concatenate([array.reshape(-1)] * 2)
    flat = array.reshape(-1).view(np.uint8)
    if flat.size:
        start = rng.randrange(flat.size)
        flat[start : start + rng.choice([1, 4, 8, flat.size])] = rng.choice([0, 1, 127, 128, 255])
    if change == 6 and array.dtype.kind == "f" and array.size:
        array.reshape(-1)[rng.randrange(array.size)] = rng.choice([np.nan, np.inf, -np.inf, 3e38, -1.0])
    return array
