# Read at ns-3's project(). Many files are compiled as one, but for this one, whose static functions another has too.
cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL set_source_files_properties
  ${CMAKE_SOURCE_DIR}/src/traffic-control/model/codel-queue-disc.cc TARGET_DIRECTORY traffic-control
  PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
# Its objects are linked with our program: no library is made of them, only its name.
set(CMAKE_CXX_CREATE_SHARED_LIBRARY "${CMAKE_COMMAND} -E touch <TARGET>")
