"""`sgfusion doctor`: what is wrong with an installation or a deployment, and what to do about it.

======================  =============================================================================================
check                   what is looked at
======================  =============================================================================================
Python, packages        versions against what the package asks for; gRPC and protobuf with the generated code
torch                   the version, for CPU or CUDA
extras                  which are installed, and what each is for
clock                   this host's against its certificates, and against the servers'
certificates            of one CA, role and name, key, time left, who may read the keys, the CA's too; those of servers
ports                   whether the usual ones are free, or who has them; or where a service is to listen instead
disk, memory, files     room, folders of results and state that can be written, what a process may open
engine                  Docker and Compose: only containers need them
processes               of a local cluster: who runs, is frozen, is gone, was started again
cloud                   whether it answers, proves who it is and takes us for an operator; its protocol
versions                of the cloud and the edges, against this host's
zones                   each edge dialled as an operator; zones that are lost, late or wait
peers                   from an edge's host, by its own keys: a TLS handshake with each, as with the cloud
edges                   from a device's host, by its own keys: the same with those that it calls
role                    there too: that no cloud is dialled, for devices call none
folders                 only if one that is named hangs
run file                its keys, its task and source, its data, its zones
======================  =============================================================================================

Decide, then act: in each module a probe looks, with a deadline, and gives facts; a function makes findings of facts.
"""
