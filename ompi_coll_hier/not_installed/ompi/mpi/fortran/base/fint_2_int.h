/* SPDX-License-Identifier: BSD-3-Clause */
/* Debian's Open MPI does not install its header of this name, which op.h includes. What an inline function there needs
 * of it: a number as Fortran has it. */
#ifndef HIER_FINT_2_INT_H
#define HIER_FINT_2_INT_H

#define OMPI_INT_2_FINT(number) (number)

#endif
