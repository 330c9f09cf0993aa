"""Every reader reads mutated files: it raises one of our errors, or loads what was written.

A mutation of the bytes of a safetensors file or of a data set must raise, or the load must be equal. A forged file, signed
again after a change of its arrays or of its data, must raise, or what it holds can be used. So must text files, which have
no signature.

By hand: MUTATIONS=100000 pytest -m faults tests/faults/test_mutations.py
"""

import collections
import json
import multiprocessing
import os
import random
import resource
import signal
import time
import traceback
import warnings

import pytest
from mutations import mutated_arrays, mutated_bytes, mutated_data
from readers import make_readers

from hindsight_rl.errors import HindsightError
from hindsight_rl.storage import load_arrays, save_arrays

MUTATIONS = int(os.environ.get("MUTATIONS", "2000"))
SEED = int(os.environ.get("SEED", "0"))
MEMORY = 2 << 30  # bytes of address space, of the whole process
SECONDS = 5  # of processor time, for one file

pytestmark = pytest.mark.faults


class TooSlowError(BaseException):
    """Raised when a reader takes too long. No reader catches it."""


def stop(number, frame):
    raise TooSlowError(f"more than {SECONDS} s")


def mutate(reader, rng):
    """Write a mutated file. Return whether the load must be equal."""
    content = reader.path.read_bytes()
    is_forged = bool(reader.kind) and rng.random() < 0.7
    if is_forged:
        arrays, data = load_arrays(reader.path, reader.kind)
        if rng.random() < 0.5:
            arrays = mutated_arrays(arrays, rng)
        else:
            data = mutated_data(data, rng)
        save_arrays(reader.path, reader.kind, arrays, data)
    elif reader.path.suffix == ".json" and rng.random() < 0.5:
        reader.path.write_text(json.dumps(mutated_data(json.loads(content), rng)))
    elif reader.path.suffix == ".jsonl" and rng.random() < 0.5:
        lines = [json.loads(line) for line in content.splitlines()]
        lines[rng.randrange(len(lines))] = mutated_data(rng.choice(lines), rng)
        reader.path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    else:
        reader.path.write_bytes(mutated_bytes(content, rng))
    return (bool(reader.kind) or reader.has_checksum) and not is_forged


def read(reader, must_be_equal, expected):
    """Read a mutated file, and return "refused", "loaded" or the fault as text."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        result = reader.read()
    except HindsightError:
        return "refused"
    except (Exception, TooSlowError):
        return traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return "another load of a damaged file" if must_be_equal and result != expected else "loaded"


def restore(originals, folder):
    """Bring the files below a folder back to what they were."""
    for path in folder.rglob("*"):
        if path.is_file() and path not in originals:
            path.unlink()
    for path, content in originals.items():
        if path.is_relative_to(folder) and (not path.is_file() or path.read_bytes() != content):
            path.write_bytes(content)


def fuzz(folder):
    """Read MUTATIONS mutated files, print the counts, and raise AssertionError with the faults."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, stop)
    readers = make_readers(folder)
    originals = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    expected, counts, faults, longest = {}, collections.Counter(), {}, 0.0
    for reader in readers:
        expected[reader.name] = reader.read()
        restore(originals, reader.path.parent)
    for number in range(MUTATIONS):
        reader, rng = readers[number % len(readers)], random.Random(SEED * 10**9 + number)
        must_be_equal, began = mutate(reader, rng), time.process_time()
        outcome = read(reader, must_be_equal, expected[reader.name])
        longest = max(longest, time.process_time() - began)
        counts[outcome if outcome in ("refused", "loaded") else "fault"] += 1
        if outcome not in ("refused", "loaded"):
            faults.setdefault(outcome[-300:], f"{reader.name}, mutation {number}:\n{outcome}")
        restore(originals, reader.path.parent)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"\n{MUTATIONS} mutations: {dict(counts)}, longest {longest:.2f} s, at most {memory:.2f} GB")
    assert not faults, f"{len(faults)} kinds of faults\n" + "\n".join(faults.values())


def test_mutated_files_are_refused_or_loaded(run_folder, capfd):
    process = multiprocessing.get_context("spawn").Process(target=fuzz, args=(run_folder,))
    with capfd.disabled():
        process.start()
        process.join(300 + MUTATIONS / 10)
        process.kill()  # one that hangs
        process.join()
    assert process.exitcode == 0
