"""The notebooks of experiments/examples run from their first cell to the last."""

import sys

import pytest

from tests.support.pages import ROOT

nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")
pytest.importorskip("pandas", reason="pandas is not installed")

NOTEBOOKS = sorted((ROOT / "experiments/examples").glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs(path, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:  # the number that its text says to lower for a first look
        cell.source = cell.source.replace("GENERATIONS = 60", "GENERATIONS = 2")
    client = nbclient.NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(tmp_path)}})
    manager = client.create_kernel_manager()
    manager.kernel_spec.argv[0] = sys.executable
    client.execute()  # CellExecutionError: what a cell raised
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert not [output for output in shown if output.get("name") == "stderr"]
    assert any("image/png" in output.get("data", {}) for output in shown)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_is_kept_without_output(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code and not any(cell.outputs or cell.execution_count for cell in code)
