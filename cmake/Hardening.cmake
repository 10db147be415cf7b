# SPDX-License-Identifier: Apache-2.0
#
# What compiler, linker and loader do against the exploitation of a memory error, for everything
# that is built here. packaging/hardening.py checks the finished files. Builds with a sanitizer are
# left alone: it finds the same errors, and _FORTIFY_SOURCE would hide calls from it.

# CMake ends run paths of the build tree with separators, to make room for those of the
# installation. The loader takes the empty element after such a separator for the current folder,
# and would load libraries from there. With this separator the element is the root folder.
foreach(kind SHARED_LIBRARY EXECUTABLE)
    if(CMAKE_${kind}_RUNTIME_C_FLAG_SEP STREQUAL ":")
        set(CMAKE_${kind}_RUNTIME_C_FLAG_SEP ":/")
    endif()
endforeach()

set(catena_hardening "") # also for the compiler of cmake/Simulate.cmake
if(NOT CATENA_HARDENING OR CATENA_SANITIZE)
    return()
endif()
include(CheckCCompilerFlag)
foreach(flag -fstack-protector-strong -fstack-clash-protection -fcf-protection)
    string(MAKE_C_IDENTIFIER "CATENA_HAVE${flag}" known)
    check_c_compiler_flag(${flag} ${known})
    mark_as_advanced(${known})
    if(${known})
        list(APPEND catena_hardening ${flag})
    endif()
endforeach()
add_compile_options(${catena_hardening})

# Level 3 needs gcc 12, and all levels need optimisation. Distributions may define another level.
set(level 3)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_C_COMPILER_VERSION VERSION_LESS 12)
    set(level 2)
endif()
set(optimised $<CONFIG:Release,RelWithDebInfo,MinSizeRel>)
add_compile_options($<${optimised}:-U_FORTIFY_SOURCE> $<${optimised}:-D_FORTIFY_SOURCE=${level}>)
list(APPEND catena_hardening -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${level})

set(link -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
add_link_options(${link})
list(APPEND catena_hardening ${link})

# Programs get an address of their own in every run.
include(CheckPIESupported)
check_pie_supported()
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
