# `cmake --install`: the program, the libraries as fermata::messages, native, frontend, cores, actors with their headers
# below include/fermata, and a FermataConfig.cmake that finds what they need. CPack makes a Debian package of it.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

target_compile_features(fermata_messages PUBLIC cxx_std_20)
set(FERMATA_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/Fermata)
install(TARGETS fermata_messages fermata_native fermata_frontend fermata_cores fermata_actors
        EXPORT FermataTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(folder messages native frontend actors)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/fermata
          FILES_MATCHING PATTERN "*.hpp")
endforeach()
install(EXPORT FermataTargets NAMESPACE fermata:: DESTINATION ${FERMATA_PACKAGE_DIR})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/FermataConfig.cmake.in
                              ${CMAKE_CURRENT_BINARY_DIR}/FermataConfig.cmake INSTALL_DESTINATION ${FERMATA_PACKAGE_DIR})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/FermataConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/FermataConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/FermataConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/fermata_caf.cmake DESTINATION ${FERMATA_PACKAGE_DIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(CPACK_PACKAGE_NAME fermata)
set(CPACK_PACKAGE_CONTACT "the Fermata project")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "the Fermata project")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libcaf-dev, libpcre2-dev, libutf8proc-dev, libxxhash-dev, prometheus-cpp-dev")
include(CPack)
