"""Train hindsight-rl and Stable-Baselines3 on one task, yours too, and print one table.

python benchmarks/against_sb3.py my_task:MyTask-v0 --steps 10000 --seeds 0-1

hindsight-rl: `hindsight-rl train ENV --recipe default`, with nothing declared. SB3: benchmarks/peers.py, SAC (DQN if the
actions are Discrete) with HerReplayBuffer and its default settings. Both run one after the other, on one thread, on the
same seeds, with the same evaluation episodes, and end when they are solved. --updates gives SB3 more updates per step: it
makes one, and hindsight-rl the number that the table shows.

A module in the current folder is found. Run folders and CSV files are kept in --folder, and what is there is not run again.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hindsight_rl.report.run import read_run
from hindsight_rl.report.write import result_of
from result_tables import read, result_of_peer

FOLDER = Path(__file__).parent
HEAD = ("library", "seed", "updates per step", "solved at steps", "last success", "steps", "seconds")


def main() -> None:
    """Train what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environment")
    parser.add_argument("--steps", type=int, default=20_000, help="at most so many environment steps per run")
    parser.add_argument("--seeds", default="0", help="as in 0-2")
    parser.add_argument("--every", type=int, default=1_000, help="steps between evaluations")
    parser.add_argument("--episodes", type=int, default=100, help="per evaluation")
    parser.add_argument("--updates", type=int, default=1, help="updates per step of SB3")
    parser.add_argument("--folder", type=Path, default=Path("runs/against-sb3"))
    given = parser.parse_args()
    first, _, last = given.seeds.partition("-")
    lines = []
    for seed in range(int(first), int(last or first) + 1):
        lines += [run_ours(given, seed), run_sb3(given, seed)]
        print(*lines[-2:], sep="\n", flush=True)
    print(f"\n{table(lines)}")


def run_ours(given: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Return the line of a run of hindsight-rl."""
    folder = place(given, f"ours-{seed}")
    if not (folder / "ended.json").exists():
        words = ["-m", "hindsight_rl", "train", given.environment, "--recipe", "default", "--folder", str(folder)]
        words += ["--steps", str(given.steps), "--eval-every", str(given.every), "--eval-episodes", str(given.episodes)]
        call([*words, "--seed", str(seed), "--workers", "0", "--resume"])
    run = read_run(folder)
    found = result_of(run)
    return {
        "library": f"hindsight-rl, {found['agent'].upper()}",
        "seed": seed,
        "updates per step": f"{run.options.updates_per_step:g}",
        "solved at steps": found["steps_to_solve"] or "no",
        "last success": f"{float(found['final_success']):.0%}",
        "steps": f"{found['env_steps']} + {found['check_steps']} of the check",
        "seconds": f"{float(found['seconds']):.0f}",
    }


def run_sb3(given: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Return the line of a run of SB3."""
    curve = place(given, f"sb3-{given.updates}-{seed}.csv")
    if not curve.exists():
        words = [str(FOLDER / "peers.py"), given.environment, "--agent", "auto", "--steps", str(given.steps)]
        words += ["--every", str(given.every), "--episodes", str(given.episodes), "--updates", str(given.updates)]
        call([*words, "--seed", str(seed), "--output", str(curve)])
    lines = read(curve)
    found = result_of_peer(lines, str(seed))
    return {
        "library": f"SB3, {lines[-1]['agent'].upper()}",
        "seed": seed,
        "updates per step": given.updates,
        "solved at steps": found.get("steps_to_solve", "no"),
        "last success": f"{float(found['final_success']):.0%}",
        "steps": found["env_steps"],
        "seconds": f"{float(found['seconds']):.0f}",
    }


def place(given: argparse.Namespace, name: str) -> Path:
    """Return a path in the folder of the task. The name says what the run depends on."""
    task = re.sub(r"[^\w.-]", "_", given.environment)
    return given.folder / f"{task}-{given.steps}-{given.every}-{given.episodes}" / name


def call(words: list[str]) -> None:
    """Run Python with the current folder on its path, on one thread. What it prints on stderr is shown."""
    path = os.pathsep.join(filter(None, (os.getcwd(), os.environ.get("PYTHONPATH", ""))))
    variables = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, *words], env=variables, check=True, stdout=subprocess.DEVNULL)


def table(lines: list[dict[str, Any]]) -> str:
    """Return a Markdown table."""
    return "\n".join(rows(lines))


def rows(lines: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the head and the rows of the table."""
    yield f"| {' | '.join(HEAD)} |"
    yield "|---" * len(HEAD) + "|"
    for line in lines:
        yield f"| {' | '.join(str(line[name]) for name in HEAD)} |"


if __name__ == "__main__":
    main()
