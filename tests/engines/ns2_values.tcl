# write_values_at TIME PATH: at TIME writes every variable of the senders, sinks, sources and queues
# of a run, one a line: "object variable value". An object is named by its class, a queue by its
# link's nodes too. A class's own variables are ns-2's defaults; by them every variable is found.

proc write_values_at {time path} {
    set run [Simulator info instbody run]
    Simulator instproc run {} "\$self at $time {write_values $path}\n$run"
}

proc write_values {path} {
    set file [open $path w]
    foreach top {Agent/TCP Agent/TCPSink Agent/UDP Application} {
        foreach object [instances_below $top] {
            write_variables $file [$object info class] $object
        }
    }
    foreach link [instances_below SimpleLink] {
        set queue [$link queue]
        write_variables $file "[$queue info class]:[[$link src] id]-[[$link dst] id]" $queue
    }
    close $file
}

proc instances_below {class} {
    set found [$class info instances]
    foreach below [$class info subclass] {
        lappend found {*}[instances_below $below]
    }
    return $found
}

proc write_variables {file name object} {
    set class [$object info class]
    foreach kind [concat $class [$class info heritage]] {
        foreach variable [$kind info vars] {
            if {![catch {$object set $variable} value]} {
                puts $file "$name $variable $value"
            }
        }
    }
}
