"""Notebooks as somebody else saved them (untrusted, nothing has run), and notebooks to be run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat

MIME = "application/vnd.nbcomp.compilation+json"


def saved(path: Path, *payloads: Any, plain: str = "the plain form") -> None:
    """Write a notebook with one cell per payload, each with that output."""
    cells = [
        {
            "cell_type": "code",
            "id": f"c{i}",
            "metadata": {},
            "execution_count": 1,
            "source": f"# compiled {i}",
            "outputs": [
                {
                    "output_type": "execute_result",
                    "execution_count": 1,
                    "metadata": {},
                    "data": {
                        MIME: payload,
                        "text/html": "<b>the static form</b>",
                        "text/plain": plain,
                    },
                }
            ],
        }
        for i, payload in enumerate(payloads)
    ]
    _write(path, cells)


def written(path: Path, *sources: str) -> None:
    """Write a notebook with these cells, none of which has run."""
    _write(path, [nbformat.v4.new_code_cell(source) for source in sources])


def _write(path: Path, cells: list[dict[str, Any]]) -> None:
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {
        "cells": cells,
        "metadata": {"kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path.write_text(json.dumps(notebook), encoding="utf-8")
