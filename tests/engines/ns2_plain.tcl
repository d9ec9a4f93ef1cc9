# A script as any user of ns-2 writes it; what is not set here is ns-2's default.
#
#   ns ns2_plain.tcl TRACE VALUES SEED AGENT SINK WINDOW QUEUE LIMIT CBR_MBPS DURATION
#
#   n1 \               / n4       every link 10 Mbit/s and 10 ms; TCP from n1 to n4 at 1 s,
#       n2 --------- n3           CBR from n2 to n3 at 0 s (0 Mbit/s: none); QUEUE and LIMIT are
#   n5 /               \ n6       those of n2 - n3
#
# TRACE gets ns-2's own trace, VALUES the variables of every object (ns2_values.tcl), just before the
# end. SEED stands for chance, to which a script that sets none leaves it.

lassign $argv trace_path values_path seed agent_class sink_class window kind limit cbr_mbps duration
source [file join [file dirname [info script]] ns2_values.tcl]
write_values_at [expr {$duration - 1e-6}] $values_path
$defaultRNG seed $seed
set ns [new Simulator]
set trace [open $trace_path w]
$ns trace-all $trace

foreach name {n1 n2 n3 n4 n5 n6} {
    set $name [$ns node]
}
$ns duplex-link $n1 $n2 10Mb 10ms DropTail
$ns duplex-link $n5 $n2 10Mb 10ms DropTail
$ns duplex-link $n2 $n3 10Mb 10ms $kind
$ns duplex-link $n3 $n4 10Mb 10ms DropTail
$ns duplex-link $n3 $n6 10Mb 10ms DropTail
$ns queue-limit $n2 $n3 $limit

if {$cbr_mbps > 0} {
    set udp [$ns create-connection UDP $n2 Null $n3 1]
    set cbr [new Application/Traffic/CBR]
    $cbr attach-agent $udp
    $cbr set rate_ ${cbr_mbps}Mb
    $ns at 0.0 "$cbr start"
}
set tcp [$ns create-connection $agent_class $n1 $sink_class $n4 0]
$tcp set window_ $window
set ftp [new Application/FTP]
$ftp attach-agent $tcp
$ns at 1.0 "$ftp start"

$ns at $duration finish
proc finish {} {
    global ns trace
    $ns flush-trace
    close $trace
    exit 0
}
$ns run
