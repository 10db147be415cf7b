# SPDX-License-Identifier: Apache-2.0
#
# The Python package, ready to use from <build>/python. Its extension module uses only the stable
# ABI of Python 3.11, so one binary serves all later versions. Most of its functions are generated
# from the description of the public interface.
if(CATENA_PYTHON)
    find_package(Python3 3.11 COMPONENTS Interpreter Development.Module QUIET)
endif()
set(CATENA_PYTHON_FOUND ${Python3_Development.Module_FOUND})
set(CATENA_PYTHON_VERSION ${Python3_VERSION})
catena_feature(PYTHON "Python headers" "python3-dev, 3.11 or later" "no Python package")
if(NOT CATENA_PYTHON_FOUND)
    return()
endif()

set(python_source "${PROJECT_SOURCE_DIR}/bindings/python")
set(python_build "${PROJECT_BINARY_DIR}/python/catena")
file(GLOB python_c CONFIGURE_DEPENDS "${python_source}/src/*.c")
file(GLOB python_py CONFIGURE_DEPENDS "${python_source}/catena/*.py"
    "${python_source}/catena/py.typed")
file(GLOB python_generator CONFIGURE_DEPENDS bindings/generate/python*.py)
set(python_made "${PROJECT_BINARY_DIR}/generated/python")
add_custom_command(
    OUTPUT "${python_made}/calls.c" "${python_made}/_core.pyi" "${python_made}/_ops.py"
    DEPENDS bindings/interface.json bindings/generate/fields.py ${python_generator}
        bindings/python/src/_core.pyi
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}/bindings"
    COMMAND Python3::Interpreter -m generate.python "${python_made}"
    COMMAND ${CMAKE_COMMAND} -E touch "${python_made}/calls.c" "${python_made}/_core.pyi"
        "${python_made}/_ops.py"
    COMMENT "Generating the functions of the Python package")
list(APPEND python_py "${python_made}/_core.pyi" "${python_made}/_ops.py")
add_library(catena_python MODULE ${python_c} "${python_made}/calls.c")
target_include_directories(catena_python PRIVATE "${python_source}/src")
target_include_directories(catena_python SYSTEM PRIVATE ${Python3_INCLUDE_DIRS})
target_link_libraries(catena_python PRIVATE catena catena_warnings)
set_target_properties(catena_python PROPERTIES PREFIX "" OUTPUT_NAME _core SUFFIX ".abi3.so"
    LIBRARY_OUTPUT_DIRECTORY "${python_build}" C_VISIBILITY_PRESET hidden)
foreach(file ${python_py})
    get_filename_component(name ${file} NAME)
    add_custom_command(OUTPUT "${python_build}/${name}" DEPENDS ${file}
        COMMAND ${CMAKE_COMMAND} -E copy ${file} "${python_build}/${name}")
    list(APPEND python_copies "${python_build}/${name}")
endforeach()
add_custom_target(catena_python_files ALL DEPENDS ${python_copies})

# Installed beside the library; PYTHONPATH or a .pth file makes Python find it.
set(CATENA_PYTHON_DIR "${CMAKE_INSTALL_LIBDIR}/catena/python/catena" CACHE STRING
    "Folder of the Python package below the prefix")
catena_place(python_folder "${CMAKE_INSTALL_PREFIX}" "${CATENA_PYTHON_DIR}")
file(RELATIVE_PATH python_to_lib "${python_folder}" "${CMAKE_INSTALL_FULL_LIBDIR}")
set_target_properties(catena_python PROPERTIES INSTALL_RPATH "$ORIGIN/${python_to_lib}")
catena_install(TARGETS catena_python DESTINATION "${CATENA_PYTHON_DIR}")
catena_install(FILES ${python_py} DESTINATION "${CATENA_PYTHON_DIR}")
