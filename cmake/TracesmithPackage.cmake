# SPDX-License-Identifier: Apache-2.0
# Installs the Python package: below a prefix, where `tracesmith record` finds it for the programs
# that it starts; and as component "wheel", from which packaging/tracesmith_build.py makes a wheel.
# Both add the Python files.

set(package_folder ${CMAKE_INSTALL_LIBDIR}/tracesmith/python)
# lib/ in a wheel; the prefix's library folder otherwise.
set_target_properties(${python_modules} PROPERTIES INSTALL_RPATH "$ORIGIN/lib:$ORIGIN/../../..")
install(TARGETS ${python_modules} LIBRARY DESTINATION ${package_folder}/tracesmith)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/tracesmith DESTINATION ${package_folder}
	FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE)
install(FILES ${shims} DESTINATION ${package_folder})

set(package_libraries tracesmith-agent)
foreach(library IN ITEMS libtracesmith-shared tracesmith-opencl tracesmith-backend-cuda)
	if(TARGET ${library})
		list(APPEND package_libraries ${library})
	endif()
endforeach()
add_custom_target(package-parts DEPENDS tracesmith ${package_libraries} ${python_modules})
install(TARGETS tracesmith RUNTIME DESTINATION bin COMPONENT wheel EXCLUDE_FROM_ALL)
install(TARGETS ${package_libraries} LIBRARY DESTINATION tracesmith/lib COMPONENT wheel NAMELINK_SKIP EXCLUDE_FROM_ALL)
install(TARGETS ${python_modules} LIBRARY DESTINATION tracesmith COMPONENT wheel EXCLUDE_FROM_ALL)
