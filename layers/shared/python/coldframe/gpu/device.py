"""Checks, before anything is loaded, whether onnxruntime can use a GPU."""

import ctypes
from typing import Protocol

from coldframe.errors import DeviceMissing

_WAY_OUT = (
    " Start the container with `--gpus all` on a machine with an NVIDIA GPU, or set COLDFRAME_DEVICE=cpu, or"
    " COLDFRAME_DEVICE=auto for a GPU where there is one."
)


class Driver(Protocol):
    """Two functions of NVIDIA's driver that count its GPUs."""

    def cuInit(self, flags: int, /) -> int: ...  # noqa: N802

    def cuDeviceGetCount(self, count: object, /) -> int: ...  # noqa: N802


def load_driver() -> Driver:
    """NVIDIA's driver library. Raises DeviceMissing where there is none."""
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as exc:
        raise DeviceMissing(f"No NVIDIA driver is visible here (libcuda.so.1).{_WAY_OUT}") from exc


def count_gpus(driver: Driver) -> int:
    """Number of GPUs that the driver gives this process. Raises DeviceMissing if there is none."""
    count = ctypes.c_int(0)
    status = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    if status or count.value < 1:
        raise DeviceMissing(f"NVIDIA's driver shows no GPU (status {status}).{_WAY_OUT}")
    return count.value


def check_device() -> None:
    """Loads CUDA's libraries. Raises DeviceMissing, which says why, where no encoder can run on a GPU."""
    count_gpus(load_driver())
    import onnxruntime as ort

    if "CUDAExecutionProvider" not in ort.get_available_providers():
        raise DeviceMissing(
            "This onnxruntime is the one for CPUs. Install the package onnxruntime-gpu instead:"
            " functions/server/gpu-requirements.txt, as the image's target `gpu` does."
        )
    ort.preload_dlls(cuda=True, cudnn=False)  # from nvidia's wheels, without a path setting
