# Debian packages: libtapegrad0.1 for running programs and libtapegrad-dev for building them.
#
#     cmake --preset package && cmake --build --preset package -t package
#
# Requires the preset's shared library and prefix /usr, under which Debian has a folder per architecture. tests/package
# tests the packages.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "The tapegrad developers <>" CACHE STRING "Maintainer of the packages: name <address>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL runtime development)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# dpkg-shlibdeps finds the library's dependencies. Its headers need the minor version of xtensor used for the build.
get_target_property(soversion tapegrad SOVERSION)
set(runtime libtapegrad${soversion})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME ${runtime})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY >=)
file(WRITE ${PROJECT_BINARY_DIR}/package/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/package/triggers)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libtapegrad-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(version "${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "${runtime} (= ${version}), libxtensor-dev (>= ${tapegrad_xtensor}), libxtensor-dev (<< ${tapegrad_xtensor_after})")
set(about
    "It records operations on a tape and computes the gradient of every
parameter in a backward pass. On top of it are attention layers and optimizers
with PyTorch's names.

This package has")
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "${about} the shared library.")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "${about} the headers and the files for CMake and pkg-config.")

# Each package includes its copyright and changelog in Debian's formats.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)  # SOURCE_DATE_EPOCH if set
file(WRITE ${PROJECT_BINARY_DIR}/package/changelog.Debian
"tapegrad (${version}) unstable; urgency=medium

  * See docs/CHANGELOG.md in the sources.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
execute_process(COMMAND gzip --force --best --no-name ${PROJECT_BINARY_DIR}/package/changelog.Debian
                COMMAND_ERROR_IS_FATAL ANY)
foreach(component runtime development)
  string(TOUPPER ${component} upper)
  set(documents ${CMAKE_INSTALL_DATAROOTDIR}/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  install(FILES LICENSE RENAME copyright DESTINATION ${documents} COMPONENT ${component} EXCLUDE_FROM_ALL)
  install(FILES ${PROJECT_BINARY_DIR}/package/changelog.Debian.gz DESTINATION ${documents} COMPONENT ${component}
          EXCLUDE_FROM_ALL)
endforeach()

include(CPack)
