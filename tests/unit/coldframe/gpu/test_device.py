"""Is there a GPU: every way of having none has its own words."""

import ctypes
import re
from typing import Any

import pytest

from coldframe.errors import DeviceMissing
from coldframe.gpu import device
from coldframe.gpu.device import check_device, count_gpus, load_driver
from tests.conftest import ROOT


class FakeDriver:
    """NVIDIA's driver with some number of GPUs."""

    def __init__(self, gpus: int, status: int = 0) -> None:
        self._gpus, self._status = gpus, status

    def cuInit(self, flags: int) -> int:  # noqa: N802
        return self._status

    def cuDeviceGetCount(self, count: Any) -> int:  # noqa: N802
        ctypes.cast(count, ctypes.POINTER(ctypes.c_int))[0] = self._gpus
        return 0


def test_gpus_are_counted() -> None:
    """As many as the driver shows."""
    assert count_gpus(FakeDriver(2)) == 2


@pytest.mark.parametrize("driver", [FakeDriver(0), FakeDriver(1, status=100)])
def test_a_driver_without_a_gpu(driver: FakeDriver) -> None:
    """None is shown, or CUDA cannot start (100: no device): the error says what to do."""
    with pytest.raises(DeviceMissing, match=r"shows no GPU.*--gpus all.*COLDFRAME_DEVICE=auto"):
        count_gpus(driver)


def test_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine, or a container, that has none: the error names the library and the way out."""

    def missing(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", missing)
    with pytest.raises(DeviceMissing, match=r"libcuda\.so\.1.*--gpus all"):
        load_driver()


def test_the_package_for_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a GPU and its driver, but with the onnxruntime for CPUs, the error names the right package."""
    monkeypatch.setattr(device, "load_driver", lambda: FakeDriver(1))
    with pytest.raises(DeviceMissing, match="onnxruntime-gpu") as refused:
        check_device()
    (named,) = re.findall(r"\S+requirements\.txt", str(refused.value))
    assert (ROOT / named).is_file()
