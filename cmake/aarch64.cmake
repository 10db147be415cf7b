# SPDX-License-Identifier: Apache-2.0
#
# Toolchain file for cross-building for AArch64 on Debian (dev/shell --arch arm64). Tests run under
# qemu. Set QEMU_CPU to choose the emulated CPU: max (SVE2), a64fx (SVE with 512 bits), cortex-a72
# (no SVE).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
