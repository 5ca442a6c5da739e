"""Fixtures that several test files share."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands import Command, learn_into, write_csv


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command in this process."""
    return Command(capsys, monkeypatch)


@pytest.fixture
def people_csv(tmp_path: Path) -> Path:
    """The people, in a file."""
    return write_csv(tmp_path / "people.csv")


@pytest.fixture(scope="session")
def people_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of what the people bought; not to be changed."""
    folder = tmp_path_factory.mktemp("models")
    return learn_into(
        folder / "people.json", write_csv(folder / "people.csv"), "-t", "bought", "--alpha", "0.01"
    )
