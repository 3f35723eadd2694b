@testable import Cryptography
import CMeasure
import EngineBenchmarks
import Foundation
import Glibc

@testable import MediaEngine

/// Agents of many calls and the far sides of these calls, a process of its own that costs as little as possible.
///
///     line ◄──► WebSocket ◄──► agent       by /speech: speech from the start of the call on, 40 ms a message
///                                          by /answers: sound, a mark and a key for each message from the start on
///     leg ◄──► UDP ◄──► far side           sends noise too quiet for speech to each leg that sends, 20 ms a packet
struct AgentPeer {
    private static let argument = "agent-peer"
    /// Its sockets, which it has from who starts it: connections wait in them until it runs.
    private struct Sockets {
        var listener: CInt
        var datagrams: CInt
    }

    /// Its process.
    let process: CInt
    /// Of both sockets.
    let (agents, farSides): (UInt16, UInt16)

    func address(_ path: String) -> String { "ws://127.0.0.1:\(agents)\(path)" }

    func stop() { measure_stop(process) }

    /// Starts it.
    static func start() throws -> AgentPeer {
        let sockets = Sockets(
            listener: socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0),
            datagrams: socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        )
        defer { for socket in [sockets.listener, sockets.datagrams] { close(socket) } }
        let ports = try [sockets.listener, sockets.datagrams].map { try bind($0) }
        guard listen(sockets.listener, 1024) == 0 else { throw failure("listen") }
        let words = ["benchmarks", argument, "\(sockets.listener)", "\(sockets.datagrams)"]
        var arguments = words.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        let process = measure_start("/proc/self/exe", &arguments)
        guard process > 0 else {
            throw Options.Wrong(description: "no second process: \(String(cString: strerror(-process)))")
        }
        return AgentPeer(process: process, agents: ports[0], farSides: ports[1])
    }

    /// Binds a socket to a free port of loopback, which it answers.
    private static func bind(_ socket: CInt) throws -> UInt16 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
        var count = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.bind(socket, $0, count) == 0 && getsockname(socket, $0, &count) == 0
            }
        }
        guard isBound else { throw failure("bind") }
        return UInt16(bigEndian: address.sin_port)
    }

    private static func failure(_ what: String) -> Options.Wrong {
        Options.Wrong(description: "\(what): \(String(cString: strerror(errno)))")
    }

    // MARK: The process

    /// Whether this process was started as the peer; then it is one until it is killed.
    static func runIfAsked() {
        let arguments = CommandLine.arguments
        guard arguments.count == 4, arguments[1] == argument, let listener = CInt(arguments[2]),
            let datagrams = CInt(arguments[3])
        else { return }
        measure_end_with_parent()
        signal(SIGPIPE, SIG_IGN)
        for socket in [listener, datagrams] { _ = fcntl(socket, F_SETFL, O_NONBLOCK) }
        var agents = Agents(listener)
        var farSides = FarSides(datagrams)
        while true {
            // Of many, what comes within a millisecond is taken at once.
            let isBusy = agents.count + farSides.count > 8
            if isBusy { usleep(UInt32(1000 - measure_now() / 1000 % 1000)) }
            agents.take(patience: isBusy ? 0 : 1)
            farSides.take()
            let now = measure_now()
            agents.speak(now)
            farSides.speak(now)
        }
    }
}

/// The agents' ends of the lines.
private struct Agents {
    private struct Line {
        let socket: CInt
        var bytes: [UInt8] = []
        var isOpen = false
        var answers = false
        /// Messages that have come.
        var count = 0
        /// When it says something next, and what.
        var due = Int64.max
        var piece = 0
    }

    private let listener: CInt
    private var lines: [Line] = []
    private var buffer = [UInt8](repeating: 0, count: 65_536)
    /// Ten seconds of speech as messages.
    private let speech: [[UInt8]]

    init(_ listener: CInt) {
        self.listener = listener
        let samples = TestSignal.samples(10, AudioFormat(sampleRate: 8000))
        speech = stride(from: 0, to: samples.count - 319, by: 320).map { place in
            var bytes = [UInt8](repeating: 0, count: 320)
            var room = bytes.mutableSpan
            G711.encodeMuLaw(samples.span.extracting(place..<(place + 320)), into: &room)
            let payload = Data(bytes).base64EncodedString()
            return Self.frame(#"{"event":"media","streamSid":"MZ1","media":{"payload":"\#(payload)"}}"#)
        }
    }

    var count: Int { lines.count }

    /// A message on the wire: text of at least 126 bytes, or less.
    private static func frame(_ text: String) -> [UInt8] {
        let count = text.utf8.count
        return [0x81] + (count < 126 ? [UInt8(count)] : [126, UInt8(count >> 8), UInt8(count & 0xFF)]) + text.utf8
    }

    /// Takes what has come.
    mutating func take(patience milliseconds: CInt) {
        var polled = [pollfd(fd: listener, events: Int16(POLLIN), revents: 0)]
        polled += lines.map { pollfd(fd: $0.socket, events: Int16(POLLIN), revents: 0) }
        guard poll(&polled, nfds_t(polled.count), milliseconds) > 0 else { return }
        for index in lines.indices.reversed() where polled[index + 1].revents != 0 {
            var line = lines[index]
            if read(&line) {
                lines[index] = line
            } else {
                close(line.socket)
                lines.remove(at: index)
            }
        }
        while case let socket = accept(listener, nil, nil), socket >= 0 {
            var isOn: CInt = 1
            setsockopt(socket, CInt(IPPROTO_TCP), TCP_NODELAY, &isOn, socklen_t(MemoryLayout<CInt>.size))
            lines.append(Line(socket: socket))
        }
    }

    /// Reads from a line; answers false when that is over.
    private mutating func read(_ line: inout Line) -> Bool {
        let count = recv(line.socket, &buffer, buffer.count, Int32(MSG_DONTWAIT))
        guard count > 0 else { return count < 0 && errno == EAGAIN }
        line.bytes += buffer[..<count]
        if !line.isOpen, !open(&line) { return true }
        var place = 0
        while case let rest = line.bytes.count - place, rest >= 6 {
            let short = Int(line.bytes[place + 1] & 0x7F)
            let long = Int(line.bytes[place + 2]) << 8 | Int(line.bytes[place + 3])
            let byteCount = short < 126 ? 6 + short : 8 + long
            guard rest >= byteCount else { break }
            switch line.bytes[place] & 0x0F {
            case 8:
                say([0x88, 2, 3, 232], line)
                return false
            case 1: note(&line)
            default: break
            }
            place += byteCount
        }
        line.bytes.removeFirst(place)
        return true
    }

    /// Answers the request by HTTP, once it is whole.
    private func open(_ line: inout Line) -> Bool {
        let request = String(decoding: line.bytes, as: UTF8.self)
        guard let end = request.range(of: "\r\n\r\n") else { return false }
        let key = request.split(separator: "\r\n").first { $0.lowercased().hasPrefix("sec-websocket-key:") }
        let name = key?.drop { $0 != ":" }.dropFirst().trimmingCharacters(in: .whitespaces) ?? ""
        let proof = HashFunction.sha1.hash(Array((name + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8))
        let fields = ["Upgrade: websocket", "Connection: Upgrade"]
        let answer =
            ["HTTP/1.1 101 Switching Protocols"] + fields
            + ["Sec-WebSocket-Accept: \(Data(proof).base64EncodedString())", "", ""]
        say(Array(answer.joined(separator: "\r\n").utf8), line)
        line.bytes.removeFirst(request[..<end.upperBound].utf8.count)
        (line.isOpen, line.answers) = (true, request.hasPrefix("GET /answers"))
        return true
    }

    /// A message has come: the second one is the start of the call.
    private func note(_ line: inout Line) {
        line.count += 1
        guard line.count >= 2 else { return }
        if line.answers {
            let others = [#"{"event":"mark","mark":{"name":"m"}}"#, #"{"event":"dtmf","dtmf":{"digit":"5"}}"#]
            say(others.reduce(speech[line.count % speech.count]) { $0 + Self.frame($1) }, line)
        } else if line.count == 2 {
            line.due = measure_now()
            line.piece = lines.count * 7
        }
    }

    /// Says what is due.
    mutating func speak(_ now: Int64) {
        for index in lines.indices where lines[index].due <= now {
            lines[index].due += 40_000_000
            lines[index].piece += 1
            say(speech[lines[index].piece % speech.count], lines[index])
        }
    }

    /// What does not fit, of a line that is not read, would end it.
    private func say(_ bytes: [UInt8], _ line: Line) {
        guard send(line.socket, bytes, bytes.count, Int32(MSG_DONTWAIT)) != bytes.count else { return }
        shutdown(line.socket, Int32(SHUT_RDWR))
    }
}

/// The far sides of the calls, on one socket.
private struct FarSides {
    private struct Leg {
        var address: sockaddr_in
        var due: Int64
        /// When it has sent something last.
        var heard: Int64
        var count = 0
    }

    private let socket: CInt
    private var legs: [Leg] = []
    /// Where they are in `legs`.
    private var places: [UInt16: Int] = [:]
    private var packet = [UInt8](repeating: 0, count: 172)
    private var buffer = [UInt8](repeating: 0, count: 2048)

    init(_ socket: CInt) {
        self.socket = socket
        packet[0] = 0x80
        // Up to 16 of 32768.
        let quiet: [UInt8] = [0xFF, 0xFE, 0x7F, 0x7E, 0xFD, 0x7D]
        for place in 12..<172 { packet[place] = quiet[place &* 7919 % 61 % quiet.count] }
    }

    var count: Int { legs.count }

    /// Takes what has come, and notes who is new, and who is gone.
    mutating func take() {
        let now = measure_now()
        if legs.contains(where: { now - $0.heard > Self.patience }) {
            legs.removeAll { now - $0.heard > Self.patience }
            places = Dictionary(uniqueKeysWithValues: legs.enumerated().map { ($1.address.sin_port, $0) })
        }
        while true {
            var (source, count) = (sockaddr_in(), socklen_t(MemoryLayout<sockaddr_in>.size))
            let byteCount = withUnsafeMutablePointer(to: &source) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    recvfrom(socket, &buffer, buffer.count, 0, $0, &count)
                }
            }
            guard byteCount >= 0 else { return }
            guard byteCount == packet.count else { continue }
            if let place = places[source.sin_port] {
                legs[place].heard = now
            } else {
                places[source.sin_port] = legs.count
                legs.append(Leg(address: source, due: now, heard: now))
            }
        }
    }

    /// Sends what is due.
    mutating func speak(_ now: Int64) {
        for index in legs.indices where legs[index].due <= now {
            let (number, size) = (legs[index].count, socklen_t(MemoryLayout<sockaddr_in>.size))
            legs[index].count += 1
            legs[index].due += 20_000_000
            let time = number * 160
            for (place, value) in [number >> 8, number, time >> 24, time >> 16, time >> 8, time].enumerated() {
                packet[2 + place] = UInt8(truncatingIfNeeded: value)
            }
            // Its source has the number of the leg.
            (packet[10], packet[11]) = (UInt8(truncatingIfNeeded: index >> 8), UInt8(truncatingIfNeeded: index))
            withUnsafePointer(to: legs[index].address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    _ = sendto(socket, packet, packet.count, 0, $0, size)
                }
            }
        }
    }

    /// After which a leg that sends nothing is gone, in nanoseconds.
    private static let patience: Int64 = 500_000_000
}
