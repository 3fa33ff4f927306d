# tern_nvidia_folders(HEADERS LIBRARIES): the folders that may contain NVIDIA's libraries, in addition to the system's
# own. They are the folders of the toolkit, and those of pip's wheels (nvidia-cudnn-cu13, nvidia-cublas, ...) for the
# python3 on the PATH. If a wheel is named for another CUDA than the toolkit's, it is left out, because it does not link
# with the toolkit.
function(tern_nvidia_folders headers libraries)
  if(NOT DEFINED TERN_NVIDIA_WHEELS)
    execute_process(
      COMMAND python3 -c "import sys; print(';'.join(p + '/nvidia' for p in sys.path if p.endswith('-packages')))"
      OUTPUT_VARIABLE wheels ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    set(TERN_NVIDIA_WHEELS "${wheels}" CACHE STRING "Folders that hold NVIDIA's pip wheels")
    mark_as_advanced(TERN_NVIDIA_WHEELS)
  endif()
  set(found_headers ${CUDAToolkit_INCLUDE_DIRS})
  set(found_libraries ${CUDAToolkit_LIBRARY_DIR})
  foreach(wheels ${TERN_NVIDIA_WHEELS})
    file(GLOB folders ${wheels}/*)
    foreach(folder ${folders})
      get_filename_component(name ${folder} NAME)
      file(GLOB named ${wheels}/../nvidia_${name}_cu[0-9]*)
      if(NOT named OR named MATCHES "_cu${CUDAToolkit_VERSION_MAJOR}-")
        list(APPEND found_headers ${folder}/include)
        list(APPEND found_libraries ${folder}/lib)
      endif()
    endforeach()
  endforeach()
  set(${headers} ${found_headers} PARENT_SCOPE)
  set(${libraries} ${found_libraries} PARENT_SCOPE)
endfunction()
