# SPDX-License-Identifier: Apache-2.0
# Installs the tool, the agent, the library, headers, man pages and pkg-config files. Libraries of
# backends are installed by ts_add_builtin_backend().

if(TARGET tracesmith)
	install(TARGETS tracesmith RUNTIME)
endif()
# The prefix is relative to the .pc file, because it is chosen at install time.
file(RELATIVE_PATH TS_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" TS_PC_PREFIX ${TS_PC_PREFIX})
if(TARGET tracesmith-agent)
	install(TARGETS tracesmith-agent LIBRARY)
	configure_file(cmake/tracesmith-emit.pc.in generated/tracesmith-emit.pc @ONLY)
	install(FILES ${PROJECT_BINARY_DIR}/generated/tracesmith-emit.pc
		DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
if(TARGET libtracesmith)
	install(TARGETS libtracesmith ARCHIVE)
	install(TARGETS libtracesmith-shared LIBRARY)
	configure_file(cmake/tracesmith.pc.in generated/tracesmith.pc @ONLY)
	install(FILES ${PROJECT_BINARY_DIR}/generated/tracesmith.pc
		DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
if(EXISTS ${PROJECT_SOURCE_DIR}/include/tracesmith)
	install(DIRECTORY include/tracesmith DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endif()
file(GLOB man_pages CONFIGURE_DEPENDS docs/man/*.1)
install(FILES ${man_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
