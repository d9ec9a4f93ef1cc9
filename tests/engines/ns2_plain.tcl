# A script as any user of ns-2 writes it; what is not set here is ns-2's default.
#
#   ns ns2_plain.tcl TRACE VALUES TIME SEED AGENT SINK AGENT_SET QUEUE QUEUE_SET CBR_MBPS DURATION
#
#   n1 \               / n4       every link 10 Mbit/s and 10 ms; TCP from n1 to n4 at 1 s,
#       n2 --------- n3           CBR from n2 to n3 at 0 s (0 Mbit/s: none); QUEUE is the
#   n5 /               \ n6       class of the queues between n2 and n3
#
# AGENT_SET and QUEUE_SET are variables and values of the sender and of the queue from n2 to n3. TRACE
# gets ns-2's own trace, VALUES the variables of every object at TIME (ns2_values.tcl). SEED sets
# the random numbers, which a script without a seed leaves to chance.

lassign $argv trace_path values_path time seed agent_class sink_class agent_set kind queue_set cbr_mbps\
    duration
source [file join [file dirname [info script]] ns2_values.tcl]
write_values_at $time $values_path
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
foreach {name value} $queue_set {
    [[$ns link $n2 $n3] queue] set $name $value
}

if {$cbr_mbps > 0} {
    set udp [$ns create-connection UDP $n2 Null $n3 1]
    set cbr [new Application/Traffic/CBR]
    $cbr attach-agent $udp
    $cbr set rate_ ${cbr_mbps}Mb
    $ns at 0.0 "$cbr start"
}
set tcp [$ns create-connection $agent_class $n1 $sink_class $n4 0]
foreach {name value} $agent_set {
    $tcp set $name $value
}
set ftp [new Application/FTP]
$ftp attach-agent $tcp
$ns at 1.0 "$ftp start"

$ns at $duration {
    $ns flush-trace
    close $trace
    exit 0
}
$ns run
