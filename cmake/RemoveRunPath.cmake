# cmake -DFILE=PATH -P RemoveRunPath.cmake: the file then finds its libraries as the loader of its machine does.
file(RPATH_REMOVE FILE "${FILE}")
