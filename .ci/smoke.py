"""Does what is in dist/ work? Its wheel is installed into an empty environment and does what the README promises.

    python .ci/smoke.py dist

First the core alone, then with the extras that the README names. Needs the standard library and a package index.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

# What the core does without any extra.
CORE = """
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from sdulearn import PairLogisticRegressionCV, stack_pairs

X, truth = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
pairs = np.random.default_rng(0).permutation(len(X))[:200].reshape(-1, 2)
model = PairLogisticRegressionCV().fit(*stack_pairs(X, pairs, truth[pairs[:, 0]] == truth[pairs[:, 1]]))
print(np.mean((model.predict(X) > 0) == truth))
"""
ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """Code blocks of the README."""
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def one(folder: Path, pattern: str) -> Path:
    """The one file of a name."""
    found = list(folder.glob(pattern))
    assert len(found) == 1, f"{folder} has {len(found)} files {pattern}; one is wanted"
    return found[0]


def check_sdist(path: Path) -> None:
    """It holds all that is under version control in the folders that the tests read."""
    listed = subprocess.run(
        ["git", "ls-files", "src", "reproduction", "tests", "docs", "examples"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    with tarfile.open(path) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    missing = [name for name in listed.stdout.splitlines() if name not in held and (ROOT / name).exists()]
    assert not missing, f"{path.name} lacks {missing}"
    print(f"{path.name}: {len(held):,} files, {path.stat().st_size / 1e6:.2f} MB")


def check_page(path: Path) -> None:
    """What a package index shows has no relative links."""
    with zipfile.ZipFile(path) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        links = re.findall(r"\]\((?!https?://)[^)]*\)", archive.read(name).decode())
    assert not links, f"{path.name} has relative links in its description: {links}"


class Environment:
    """An empty environment, and a folder to work in that is not the project's."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "venv" / "bin"
        self.home = folder / "home"
        self.home.mkdir()
        (self.home / "examples").symlink_to(ROOT / "examples")
        venv.create(folder / "venv", with_pip=True)

    def run(self, command: str) -> str:
        """Run a command of the environment; show it and what it prints."""
        print(f"$ {command}", flush=True)
        environment = {"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(self.home), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            command, shell=True, cwd=self.home, env=environment, capture_output=True, text=True, check=False
        )
        print(done.stdout, flush=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def install(self, what: str) -> None:
        """With the settings of whoever calls: an index of their own, for instance."""
        subprocess.run([self.bin / "python", "-m", "pip", "install", "-q", what], check=True)


def main() -> None:
    """Core, then extras."""
    dist = Path(sys.argv[1]).resolve()
    wheel = one(dist, "*.whl")
    check_sdist(one(dist, "*.tar.gz"))
    check_page(wheel)
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB")
    extras = re.search(r"pip install '\.(\[[\w,]+\])'", README)
    assert extras, "the README does not say how to install with extras"
    with tempfile.TemporaryDirectory(prefix="sdulearn-smoke-") as folder:
        fresh = Environment(Path(folder))
        fresh.install(str(wheel))
        version = wheel.name.split("-")[1]
        assert fresh.run("sdulearn --version").split() == ["sdulearn", version]
        assert "site-packages" in fresh.run("python -c 'import sdulearn; print(sdulearn.__file__)'")
        (fresh.home / "core.py").write_text(CORE, encoding="utf-8")
        assert float(fresh.run("python core.py")) > 0.9
        fresh.install(f"{wheel}{extras[1]}")
        fresh.install("pandas")
        for line in blocks("console")[2].splitlines():
            printed = fresh.run(line.removeprefix("$ "))
            assert " fit " not in line or printed.startswith(blocks("text")[0])
        (fresh.home / "example.py").write_text(blocks("python")[0], encoding="utf-8")
        assert fresh.run("python example.py") == blocks("text")[1]
        assert (fresh.home / "classes.csv").exists()
    print("The wheel does what the README says.")


if __name__ == "__main__":
    main()
