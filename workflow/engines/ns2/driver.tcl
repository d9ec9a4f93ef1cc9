# Runs one scenario on ns-2.
#
#   ns driver.tcl DATA EVENTS CALLS
#
# DATA holds lines of numbers and of the words below, written by orders.py; nothing in it is evaluated.
# EVENTS is the pipe to the reader. With CALLS = 1 each packet's line is followed by its sender's
# state. A host's packets are traced between its agent and its node, so that no line is written
# where nobody needs one:
#
#   source agent -> [+] -> node ==> first queue ... last link ==> node -> [r] -> sink
#   source agent <- [h] <- node <== acknowledgements
#
# Lines in EVENTS: + sent, r received, h acknowledgement at the sender, d dropped, with fields 3 and 4
# of the usual trace format set to the index of the flow (d: of the link direction); and
#   S time state of every TCP flow, then queue of every monitor   at each sample
#   M monitor bytes                                   bytes that have left a monitored link so far
#   C flow cwnd ssthresh timeouts                     with CALLS, after each line of a TCP sender
#   X flow timeouts                                   a flow has fallen silent
#   E                                                 the run has ended; what follows was in flight
#   Z                                                 the network is empty

lassign $argv data_path events_path calls
if {[ns-version] ne "2.35"} {
    puts stderr "ns-2 is [ns-version], not 2.35: install Debian's package ns2"
    exit 2
}

# Headers that no packet here carries would be cleared for every packet.
remove-all-packet-headers
add-packet-header IP TCP RTP Flags
# Routes come with the data. (An empty body would remove the method.)
RouteLogic instproc configure {} { return }
Agent set ttl_ 255
foreach kind {Enque Hop} {
    Trace/$kind instproc handle {line} {
        global events agent
        set sender $agent([$self set src_])
        puts $events "C [$self set src_] [$sender set cwnd_] [$sender set ssthresh_]\
            [$sender set nrexmit_]"
    }
}

DelayModel set debug_ false

set ns [new Simulator]
set clock [$ns set scheduler_]
set nobody [$ns set nullAgent_]
set events [open $events_path w]
fconfigure $events -buffering full -buffersize 262144 -translation binary
set tcp_flows {}
set monitors {}

proc tracer {kind index} {
    set tracer [new Trace/$kind]
    $tracer set src_ $index
    $tracer set dst_ 0
    $tracer attach $::events
    return $tracer
}

# Queues: limits in DATA count what waits, without the packet being transmitted.

# ns-2's DropTail drops when what waits and the arriving packet reach limit_, not when they exceed it.
proc configure_droptail {queue limit} {
    $queue set limit_ [expr {$limit + 1}]
}

proc configure_droptail_bytes {queue limit} {
    configure_droptail $queue $limit
    $queue set queue_in_bytes_ true
    $queue set mean_pktsize_ 1
}

# ns-2's RED drops when what waits has reached limit_ before the packet arrives.
proc configure_red {queue limit low high weight inverse mean gentle byte_mode wait ecn} {
    $queue set limit_ $limit
    $queue set thresh_ $low
    $queue set maxthresh_ $high
    $queue set q_weight_ $weight
    $queue set linterm_ $inverse
    $queue set mean_pktsize_ $mean
    $queue set gentle_ $gentle
    $queue set bytes_ $byte_mode
    $queue set queue_in_bytes_ $byte_mode
    $queue set wait_ $wait
    $queue set setbit_ $ecn
}

proc make_link {index from to rate delay kind args} {
    global ns node link dropped
    set class [expr {$kind eq "red" ? "RED" : "DropTail"}]
    $ns simplex-link $node($from) $node($to) $rate $delay $class
    set link($index) [$ns link $node($from) $node($to)]
    configure_$kind [$link($index) queue] {*}$args
    # The simulator resets the queues it knows: of parallel links, the last one only.
    [$link($index) queue] reset
    set dropped($index) [tracer Drop $index]
    set drophead [$link($index) set drophead_]
    $dropped($index) target [$drophead target]
    $drophead target $dropped($index)
}

# The receiving end of a link, for objects between its delay and its node.
proc insert_at_end {index object} {
    set wire [$::link($index) set link_]
    $object target [$wire target]
    $wire target $object
}

# Uniform random numbers from 0 to `most`, from a stream of their own.
proc uniform {most} {
    set generator [new RandomVariable/Uniform]
    $generator set min_ 0
    $generator set max_ $most
    $generator use-rng [new RNG]
    return $generator
}

# ns-2 has no jitter that keeps the order. Its DelayModel delays each packet by the value of a random
# variable, and a trace calls Tcl before that: the value is set for each packet.
proc make_jitter {index most rate} {
    set extra [new RandomVariable/Constant]
    set delayer [new DelayModel]
    $delayer ranvar $extra
    set before [new Trace/Generic]
    $before set callback_ 1
    $before proc handle {line} \
        "draw_delay $index [uniform $most] $extra \[expr {8 * \[lindex \$line 5\] / $rate}\]"
    set ::arrived($index) 0
    insert_at_end $index $delayer
    insert_at_end $index $before
}

# A packet begins to arrive at the earliest when the one before has arrived, as in Linux's netem.
# (`cmd` calls C++ without a search for a Tcl method, in a fifth of the time.)
proc draw_delay {index jitter extra transmission} {
    global arrived clock
    set now [$clock cmd now]
    set at [expr {max($now + [$jitter cmd value], $arrived($index) + $transmission)}]
    set arrived($index) $at
    $extra set val_ [format %.9f [expr {$at - $now}]]
}

proc make_random_loss {index probability} {
    set loss [new ErrorModel]
    $loss set rate_ $probability
    $loss unit pkt
    $loss ranvar [uniform 1]
    $loss drop-target $::dropped($index)
    insert_at_end $index $loss
}

# Packets of one flow are counted from 0; those of others pass.
proc make_listed_loss {index flow numbers} {
    set loss [new ErrorModel/List]
    $loss unit pkt
    $loss droplist $numbers
    $loss drop-target $::dropped($index)
    set after [[$::link($index) set link_] target]
    $loss target $after
    set classifier [new Classifier/Hash/Fid 33]
    $classifier set default_ [$classifier installNext $after]
    $classifier set-hash auto 0 0 $flow [$classifier installNext $loss]
    [$::link($index) set link_] target $classifier
}

proc make_monitor {number index} {
    global link monitors left
    set waiting [new QueueMonitor]
    set snoops {}
    foreach kind {In Out Drop} {
        set snoop [new SnoopQueue/$kind]
        $snoop set-monitor $waiting
        lappend snoops $snoop
    }
    $link($index) attach-monitors {*}$snoops $waiting
    lappend monitors $waiting
    set left($number) [new QueueMonitor]
    set snoop [new SnoopQueue/Out]
    $snoop set-monitor $left($number)
    insert_at_end $index $snoop
}

# Flows

proc wire_up {flow from to sender receiver} {
    global ns node
    $ns attach-agent $node($from) $sender
    $ns attach-agent $node($to) $receiver
    $ns connect $sender $receiver
    $sender set fid_ $flow
    set sent [tracer Enque $flow]
    $sent target [$sender target]
    $sender target $sent
    intercept $node($to) $receiver [tracer Recv $flow]
    return $sent
}

# Lets `tracer` see what arrives at a node for one of its agents.
proc intercept {at agent tracer} {
    $tracer target $agent
    [$at demux] install [$agent set agent_port_] $tracer
}

proc make_tcp {flow from to class sink options sink_options} {
    global node agent calls tcp_flows
    set sender [new $class]
    set receiver [new $sink]
    foreach {name value} $options {
        $sender set $name $value
    }
    foreach {name value} $sink_options {
        $receiver set $name $value
    }
    set sent [wire_up $flow $from $to $sender $receiver]
    set acknowledged [tracer Hop $flow]
    intercept $node($from) $sender $acknowledged
    $sent set callback_ $calls
    $acknowledged set callback_ $calls
    set agent($flow) $sender
    lappend tcp_flows $flow
}

# The simulator resets every agent at the start of the run: what a reset clears is set here.
proc start_tcp {flow ssthresh tick linux parameters segments} {
    set sender $::agent($flow)
    $sender set ssthresh_ $ssthresh
    if {$linux ne "none"} {
        $sender select_ca $linux
        foreach {name value} $parameters {
            $sender set_ca_param $linux $name $value
        }
        $sender set tcpTick_ $tick
    }
    if {$segments eq "endless"} {
        $sender send -1
    } else {
        # A SYN comes on top.
        $sender advanceby $segments
    }
}

proc make_cbr {flow from to rate bytes} {
    global agent source
    set agent($flow) [new Agent/UDP]
    $agent($flow) set packetSize_ $bytes
    wire_up $flow $from $to $agent($flow) [new Agent/Null]
    set source($flow) [new Application/Traffic/CBR]
    $source($flow) set rate_ $rate
    $source($flow) set packetSize_ $bytes
    $source($flow) set random_ 0
    $source($flow) attach-agent $agent($flow)
}

proc silence {flow} {
    global agent source events nobody
    set timeouts 0
    if {[info exists source($flow)]} {
        $source($flow) stop
    } else {
        set timeouts [$agent($flow) set nrexmit_]
    }
    $agent($flow) target $nobody
    puts $events "X $flow $timeouts"
}

# Samples

proc sample {number interval_ns last} {
    global ns events agent tcp_flows monitors
    set line S
    foreach flow $tcp_flows {
        append line " " [$agent($flow) set cwnd_] " " [$agent($flow) set ssthresh_]
    }
    foreach monitor $monitors {
        append line " " [$monitor set pkts_]
    }
    puts $events $line
    # Fails, and so ends the run, once nobody reads any more. (Tcl ignores SIGPIPE.)
    flush $events
    if {$number < $last} {
        incr number
        $ns at [instant [expr {$number * $interval_ns + 1}]] \
            "sample $number $interval_ns $last"
    }
}

# A packet is at the far end one delay after its transmission ended.
proc sample_monitor {monitor number interval_ns last delay_ns} {
    global ns events left
    puts $events "M $monitor [$left($monitor) set bdepartures_]"
    if {$number < $last} {
        incr number
        $ns at [instant [expr {$number * $interval_ns + $delay_ns + 1}]] \
            "sample_monitor $monitor $number $interval_ns $last $delay_ns"
    }
}

proc instant {ns} {
    return [format %d.%09d [expr {$ns / 1000000000}] [expr {$ns % 1000000000}]]
}

proc finish {} {
    puts $::events Z
    close $::events
    exit 0
}

proc obey {words} {
    global ns node link defaultRNG events
    set rest [lassign $words verb]
    switch -exact $verb {
        seed { $defaultRNG seed [lindex $rest 0] }
        nodes {
            for {set i 0} {$i < [lindex $rest 0]} {incr i} {
                set node($i) [$ns node]
            }
        }
        link { make_link {*}$rest }
        monitor { make_monitor {*}$rest }
        random { make_random_loss {*}$rest }
        jitter { make_jitter {*}$rest }
        listed { make_listed_loss {*}$rest }
        route {
            lassign $rest at to index
            $node($at) add-route [$node($to) node-addr] [$link($index) head]
        }
        tcp { make_tcp {*}$rest }
        cbr { make_cbr {*}$rest }
        start_tcp { $ns at [lindex $rest 0] [list start_tcp {*}[lrange $rest 1 end]] }
        start_cbr { $ns at [lindex $rest 0] [list start_cbr [lindex $rest 1]] }
        silence { $ns at [lindex $rest 0] [list silence [lindex $rest 1]] }
        sample { $ns at [lindex $rest 0] [list sample {*}[lrange $rest 1 end]] }
        sample_monitor { $ns at [lindex $rest 0] [list sample_monitor {*}[lrange $rest 1 end]] }
        end { $ns at [lindex $rest 0] [list puts $events E] }
        finish { $ns at [lindex $rest 0] finish }
        default { error "unknown word in data: $verb" }
    }
}

proc start_cbr {flow} {
    $::source($flow) start
}

set data [open $data_path r]
while {[gets $data line] >= 0} {
    obey $line
}
close $data
$ns run
