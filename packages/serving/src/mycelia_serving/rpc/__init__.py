"""How processes of a server talk: frames over a socket, between master and workers, leader and agents, and a
server and the commands for it.
"""
