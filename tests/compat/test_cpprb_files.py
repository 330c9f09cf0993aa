"""The cpprb adapter: files and copies of a buffer continue with the same bytes."""

import copy
import io
import pickle
from pathlib import Path

import numpy as np
import pytest
from tiny_cpprb import ENV, filled, make, play

from hindsight_rl.errors import FileError


def played(**options):
    buffer = filled([3, 5, 2, 6, 4], size=60, **options)
    buffer.add(obs=(9, 0), act=0, next_obs=(9, 1))
    if options.get("prioritized", True):
        buffer.update_priorities(buffer.sample(9)["indexes"], np.arange(9.0))
    return buffer


@pytest.mark.parametrize("options", [{}, {"prioritized": False}, {"strategy": "random", "additional_goals": 2}])
def test_a_loaded_buffer_continues_with_the_same_bytes(options, tmp_path):
    first, second, third = played(**options), make(60, seed=9, **options), make(60, seed=8, **options)
    play(second, 77, 6)
    first.save_transitions(tmp_path / "buffer.npz")
    second.load_transitions(str(tmp_path / "buffer.npz"))
    file = io.BytesIO()
    first.save_transitions(file)
    file.seek(0)
    third.load_transitions(file)
    assert [path.name for path in tmp_path.iterdir()] == ["buffer.npz"]
    for _ in range(3):
        results = []
        for buffer in (first, second, third):
            play(buffer, 9, 3)
            results.append(buffer.sample(8) | {f"all {n}": a for n, a in buffer.get_all_transitions(True).items()})
            if options.get("prioritized", True):
                buffer.update_priorities(results[-1]["indexes"], np.arange(8.0))
        for other in results[1:]:
            assert all((other[name] == array).all() for name, array in results[0].items())


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda buffer: pickle.loads(pickle.dumps(buffer))])
@pytest.mark.parametrize("prioritized", [False, True])
def test_a_copy_continues_with_the_same_bytes(copied, prioritized):
    first = played(prioritized=prioritized)
    second = copied(first)
    for number in range(10, 30):
        results = []
        for buffer in (first, second):
            play(buffer, number, 3)
            results.append(buffer.sample(8) | {f"all {n}": a for n, a in buffer.get_all_transitions().items()})
            if prioritized:
                buffer.update_priorities(results[-1]["indexes"], np.arange(8.0))
        assert second.get_stored_size() <= 60
        assert all((results[1][name] == array).all() for name, array in results[0].items())


def test_a_file_that_does_not_fit_is_refused(tmp_path):
    path, buffer = tmp_path / "buffer.npz", played()
    buffer.save_transitions(path)
    before = buffer.get_all_transitions()
    for options, words in [
        ({"additional_goals": 3}, "expected .*'future', 3.* got .*'future', 4"),
        ({"prioritized": False}, "prioritized"),
        ({"env_dict": ENV | {"more": {}}}, "expected .*'more'"),
    ]:
        with pytest.raises(FileError, match=words):
            make(60, **options).load_transitions(path)
    content = path.read_bytes()
    place = len(content) // 2
    damaged = {
        "cut": content[:place],
        "changed": content[:place] + bytes([content[place] ^ 255]) + content[place + 1 :],
        "nothing": b"",
        "foreign": b"PK no zip at all",
    }
    for name, bad in damaged.items():
        (tmp_path / name).write_bytes(bad)
        with pytest.raises(FileError):
            buffer.load_transitions(tmp_path / name)
    with pytest.raises(FileError, match="nowhere"):
        buffer.load_transitions(tmp_path / "nowhere")
    after = buffer.get_all_transitions()
    assert all((before[name] == after[name]).all() for name in before)


def test_reading_runs_no_code(tmp_path):
    class Spy:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "ran",))

    np.savez(tmp_path / "evil.npz", about=np.array([Spy()], object))
    with pytest.raises(FileError):
        make().load_transitions(tmp_path / "evil.npz")
    assert not (tmp_path / "ran").exists()
