dnl SPDX-License-Identifier: BSD-3-Clause
# HIER_BUILD_OPTIONS
# The options that change compiler flags. --enable-debug has to be known before the compilers are looked for,
# because they choose -O2 where CFLAGS and CXXFLAGS are unset.
AC_DEFUN([HIER_BUILD_OPTIONS], [
    AC_ARG_ENABLE([debug],
        [AS_HELP_STRING([--enable-debug], [build without optimisation, with assertions])],
        [], [enable_debug=no])
    AS_IF([test "$enable_debug" = yes],
        [: ${CFLAGS="-O0 -g3"} ${CXXFLAGS="-O0 -g3"}
         HIER_MODE_CPPFLAGS="-D_GLIBCXX_ASSERTIONS"],
        [HIER_MODE_CPPFLAGS="-DNDEBUG"])
    AC_SUBST([HIER_MODE_CPPFLAGS])

    # A compiler of next year, or another ROCm, may warn about what is fine today: that must stop the tests of a change
    # (.ci/run asks for it), not whoever builds for use.
    AC_ARG_ENABLE([werror],
        [AS_HELP_STRING([--enable-werror], [turn warnings into errors])],
        [], [enable_werror=no])

    HIER_WARNINGS="-Wall -Wextra -Wshadow -Wconversion -Wformat=2 -Wmissing-declarations"
    AS_IF([test "$enable_werror" = yes], [HIER_WARNINGS="$HIER_WARNINGS -Werror"])
    AC_SUBST([HIER_WARNINGS])
])

# HIER_FIND_COMPILERS
# CC and CXX, before AC_PROG_CC and AC_PROG_CXX, which name no package when they find none.
AC_DEFUN([HIER_FIND_COMPILERS], [
    AC_CHECK_PROGS([CC], [gcc clang cc])
    AS_IF([test -z "$CC"],
        [AC_MSG_ERROR([no C compiler was found: install the Debian package gcc, or name one with CC=])])
    AC_CHECK_PROGS([CXX], [g++ clang++ c++])
    AS_IF([test -z "$CXX"],
        [AC_MSG_ERROR([no C++ compiler was found: install the Debian package g++, or name one with CXX=])])
])

# HIER_COPY_FLAGS
# COPY_FLAGS: gcc for x86 fills and copies structures of some hundred bytes by "rep stos" and "rep movs", which take 16 ns to
# start on an EPYC; the C library takes 3. An allgather of 8 bytes did so at least twice.
AC_DEFUN([HIER_COPY_FLAGS], [
    COPY_FLAGS="-mstringop-strategy=libcall"
    HIER_TRY_COPY_FLAGS([C], [CFLAGS])
    HIER_TRY_COPY_FLAGS([C++], [CXXFLAGS])
    AC_SUBST([COPY_FLAGS])
])

# HIER_TRY_COPY_FLAGS(language, variable)
AC_DEFUN([HIER_TRY_COPY_FLAGS], [
    AC_LANG_PUSH([$1])
    hier_saved_flags=$$2
    $2="$$2 $COPY_FLAGS"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM()], [], [COPY_FLAGS=])
    $2=$hier_saved_flags
    AC_LANG_POP([$1])
])

# HIER_CXX20
# HIER_CXX_STANDARD: the option that makes CXX a C++20 compiler.
AC_DEFUN([HIER_CXX20], [
    HIER_CXX_STANDARD=-std=c++20
    AC_LANG_PUSH([C++])
    hier_saved_CXXFLAGS=$CXXFLAGS
    CXXFLAGS="$CXXFLAGS $HIER_CXX_STANDARD"
    AC_CACHE_CHECK([whether $CXX compiles C++20], [hier_cv_cxx20],
        [AC_COMPILE_IFELSE(
            [AC_LANG_PROGRAM(
                [[#include <compare>
                  #include <concepts>
                  #include <span>
                  struct Slice { int offset, length; auto operator<=>(const Slice &) const = default; };]],
                [[Slice one[] = {{.offset = 0, .length = 1}};
                  return std::span(one).front() == one[0] ? 0 : 1;]])],
            [hier_cv_cxx20=yes], [hier_cv_cxx20=no])])
    CXXFLAGS=$hier_saved_CXXFLAGS
    AC_LANG_POP([C++])
    AS_IF([test "$hier_cv_cxx20" = no],
        [AC_MSG_ERROR([$CXX does not compile C++20: g++ 10 or clang++ 11 and newer do (Debian packages g++, clang)])])
    AC_SUBST([HIER_CXX_STANDARD])
])

# HIER_PRECOMPILED_HEADERS
# PRECOMPILED_FLAGS: the options that include base/precompiled.hpp, where CXX is g++. g++ finds a precompiled header by the
# name of the header. clang++ wants other options.
AC_DEFUN([HIER_PRECOMPILED_HEADERS], [
    AC_ARG_ENABLE([precompiled-headers],
        [AS_HELP_STRING([--disable-precompiled-headers], [read the standard headers again for each file, as with clang++])],
        [], [enable_precompiled_headers=yes])
    AC_LANG_PUSH([C++])
    AC_PREPROC_IFELSE([AC_LANG_SOURCE([[
#ifdef __clang__
#error clang
#endif
]])], [], [enable_precompiled_headers=no])
    AC_LANG_POP([C++])
    PRECOMPILED_FLAGS=
    AS_IF([test "$enable_precompiled_headers" = yes], [PRECOMPILED_FLAGS='-include base/precompiled.hpp -I$(top_srcdir)/src'])
    AC_SUBST([PRECOMPILED_FLAGS])
    AM_CONDITIONAL([PRECOMPILED_HEADERS], [test "$enable_precompiled_headers" = yes])
])

# HIER_SANITIZERS
# Flags for the unit, model and simulated GPU tests and the libraries that they link. The component stays as it is:
# mpirun's processes would have to preload the runtime of the sanitizer.
AC_DEFUN([HIER_SANITIZERS], [
    AC_ARG_ENABLE([sanitizers],
        [AS_HELP_STRING([--enable-sanitizers=KIND],
            [a tree for the unit, model and simulated GPU tests alone, with ASan and UBSan (address, the default) or
             TSan (thread)])],
        [], [enable_sanitizers=no])
    AS_CASE([$enable_sanitizers],
        [no], [SANITIZER_FLAGS=],
        [yes|address], [enable_sanitizers=address
         # HIP 5's headers lack a kind of copy, so enum would complain of it. vptr opens a pipe, and so it complains
         # wherever a test leaves no descriptors.
         SANITIZER_FLAGS="-fsanitize=address,undefined -fno-sanitize=enum,vptr -fno-sanitize-recover=all"],
        [thread], [SANITIZER_FLAGS="-fsanitize=thread"],
        [AC_MSG_ERROR([--enable-sanitizers takes address or thread, not $enable_sanitizers])])
    AS_IF([test "$enable_sanitizers" != no], [
        SANITIZER_FLAGS="$SANITIZER_FLAGS -fno-omit-frame-pointer"
        AC_LANG_PUSH([C++])
        hier_saved_CXXFLAGS=$CXXFLAGS
        CXXFLAGS="$CXXFLAGS $SANITIZER_FLAGS"
        AC_MSG_CHECKING([whether $CXX links with $SANITIZER_FLAGS])
        AC_LINK_IFELSE([AC_LANG_PROGRAM()],
            [AC_MSG_RESULT([yes])],
            [AC_MSG_RESULT([no])
             AC_MSG_ERROR([--enable-sanitizers: $CXX has no runtime for that (Debian packages: g++ has it, clang needs libclang-rt-dev)])])
        CXXFLAGS=$hier_saved_CXXFLAGS
        AC_LANG_POP([C++])
    ])
    AC_SUBST([SANITIZER_FLAGS])
    AC_SUBST([HIER_SANITIZER], [$enable_sanitizers])
    AM_CONDITIONAL([SANITIZERS], [test "$enable_sanitizers" != no])
])

# HIER_FUZZERS
# The clang that builds the fuzz targets, whatever compiler builds the rest.
AC_DEFUN([HIER_FUZZERS], [
    AC_ARG_ENABLE([fuzzers],
        [AS_HELP_STRING([--enable-fuzzers], [build test/fuzz with clang's libFuzzer, and run it in make check])],
        [], [enable_fuzzers=no])
    AC_ARG_VAR([FUZZ_CXX], [clang++ with libFuzzer, for make fuzz])
    AC_PATH_PROGS([FUZZ_CXX], [clang++ clang++-20 clang++-19 clang++-18 clang++-17 clang++-16 clang++-15 clang++-14])
    FUZZ_FLAGS="-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
    AC_CACHE_CHECK([whether $FUZZ_CXX has libFuzzer], [hier_cv_fuzzers], [
        hier_cv_fuzzers=no
        AS_ECHO(["extern \"C\" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }"]) >conftest.cpp
        AS_IF([test -n "$FUZZ_CXX" &&
               $FUZZ_CXX -std=c++20 -fsanitize=fuzzer $FUZZ_FLAGS conftest.cpp -o conftest.fuzz >&AS_MESSAGE_LOG_FD 2>&1],
            [hier_cv_fuzzers=yes])
        rm -f conftest.cpp conftest.fuzz
    ])
    AS_IF([test "$enable_fuzzers$hier_cv_fuzzers" = yesno],
        [AC_MSG_ERROR([--enable-fuzzers needs a clang++ with libFuzzer (Debian packages clang and libclang-rt-dev)])])
    AC_SUBST([FUZZ_FLAGS])
    AM_CONDITIONAL([HAVE_FUZZERS], [test "$hier_cv_fuzzers" = yes])
    AM_CONDITIONAL([RUN_FUZZERS], [test "$enable_fuzzers" = yes])
])
