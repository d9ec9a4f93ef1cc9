# The adapter's driver, with the variables of every object written at TIME (ns2_values.tcl).
#
#   ns ns2_probe.tcl VALUES TIME DRIVER DATA EVENTS CALLS

set argv [lassign $argv values_path time driver]
source [file join [file dirname [info script]] ns2_values.tcl]
write_values_at $time $values_path
source $driver
