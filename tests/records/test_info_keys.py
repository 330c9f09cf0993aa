import pytest

from hindsight_rl.errors import OptionError
from hindsight_rl.records.info_keys import info_key, info_shapes


def test_a_key_names_an_entry_and_its_shape():
    keys = ("wind", "force[3]", "image[2,4]", "odd[0]", "x[a]")
    assert info_shapes(keys) == {"wind": (), "force": (3,), "image": (2, 4), "odd[0]": (), "x[a]": ()}
    assert [info_key(*each) for each in info_shapes(keys).items()] == list(keys)


def test_names_must_differ():
    with pytest.raises(OptionError, match=r"info_keys must differ from each other, got a, a\[2\]"):
        info_shapes(("a", "a[2]"))
