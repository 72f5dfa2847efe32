// Part of the library if it is built with the address sanitizer: plug-ins that were loaded stay, so that leaks in those
// of Open MPI have names for tools/lsan.supp.
extern "C" int dlclose(void*) { return 0; }
