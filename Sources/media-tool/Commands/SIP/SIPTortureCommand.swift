import ArgumentParser
import CallBasics
import MediaEngine
import SIP
import SIPTransport

/// Scores the stack with messages that are hard to read.
struct SIPTortureCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "torture",
        abstract:
            "Scores how SIP messages that are hard to read, as those of RFC 4475, are answered here, or by a peer.",
        discussion: """
            The table has a line for each message, below one that names the columns, which tabs separate: the file in the \
            folder, the section of the RFC, and what is expected: accept, accept-first, drop, a status code, or two of them \
            such as 400-or-lenient. Further columns are passed over. It fails when any answer does not fit.

            Without --stack the reader of messages is asked, which takes every method and type of body. With --to each message \
            goes to a peer, and a question (OPTIONS) behind it shows whether the peer lives on; a peer takes a message by any \
            answer that does not say that it cannot be read. Answers by UDP go to the ports that the messages name, most \
            often 5060, which should be free here.

            EXAMPLES
              media-tool sip torture rfc4475 --expect rfc4475/expect.tsv
              media-tool sip torture rfc4475 --expect rfc4475/expect.tsv --stack --json
              media-tool sip torture rfc4475 --expect rfc4475/expect.tsv --to 192.0.2.7:5060 --transport tcp
              media-tool sip torture rfc4475 --expect rfc4475/expect.tsv --mutations 1000 --seed 7
            """
    )

    @Argument(help: ArgumentHelp("The folder of the messages.", valueName: "dir"), completion: .directory)
    var folder: String

    @Option(help: ArgumentHelp("The table of what is expected.", valueName: "file"), completion: .file())
    var expect: String

    @Flag(help: "Let a user agent answer the messages, with all that is in it.")
    var stack = false

    @Option(help: ArgumentHelp("Send the messages to a peer.", valueName: "host:port"))
    var to: HostPort?

    @Option(help: "What carries them there: udp or tcp. Default: udp.")
    var transport: SIPTransportName?

    @Option(help: ArgumentHelp("How long the peer may take for an answer. Default: 0.5.", valueName: "s"))
    var wait: Double?

    @Option(help: ArgumentHelp("Read each message so many times more, with one byte changed.", valueName: "n"))
    var mutations = 0

    @Option(help: ArgumentHelp("What the changes are drawn by.", valueName: "n"))
    var seed: UInt64 = 1

    @OptionGroup var common: CommonOptions

    /// The table, and each message, in bytes; a message that is longer is read, and refused.
    private static let limit = 1 << 20

    func validate() throws {
        try Quantity.check("--mutations", mutations, in: 0...1_000_000)
        try Quantity.check("--wait", wait, in: 0.01...60, "s")
        guard !stack || to == nil else {
            throw ValidationError("'--stack' asks this program, '--to' another one. Leave out one.")
        }
        guard transport != .tls else {
            throw ValidationError("The value 'tls' of '--transport' is not for this command. Give udp or tcp.")
        }
        if to == nil, let other = [("--transport", transport != nil), ("--wait", wait != nil)].first(where: \.1)?.0 {
            throw ValidationError("'\(other)' is about a peer. Give '--to', or leave it out.")
        }
    }

    func run() async throws {
        common.startLogging()
        Interruption.catchSignals()
        let table = String(decoding: try TextFile.read(expect, limit: Self.limit), as: UTF8.self)
        let expectations = try TortureScore.expectations(table)
        guard !expectations.isEmpty else { throw ToolFailure("\(expect) names no message. Write a line for each.") }
        let messages = try expectations.map { try TextFile.read("\(folder)/\($0.file)", limit: Self.limit) }
        var score = TortureScore(to != nil ? .peer : stack ? .stack : .parser, seed: seed)
        if let to {
            try await ask(try to.resolve(), expectations, messages, &score)
        } else {
            for (expectation, bytes) in zip(expectations, messages) {
                score.add(expectation, bytes, mutations: mutations)
            }
        }
        common.show(score.json, text: score.text)
        guard score.rows.count == expectations.count, score.mutationCount == mutations * expectations.count else {
            throw ToolFailure("It was ended before all messages were sent. Let it come to its end.")
        }
        if !score.isMet { throw ExitCode.failure }
    }

    /// Sends all messages to a peer, each followed by those with one byte changed.
    private func ask(
        _ peer: SocketAddress,
        _ expectations: [TortureScore.Expectation],
        _ messages: [[UInt8]],
        _ score: inout TortureScore
    ) async throws {
        var items: [TortureProbe.Item] = []
        for message in messages {
            items.append(TortureProbe.Item(message, isWaitedFor: true))
            for _ in 0..<mutations { items.append(TortureProbe.Item(score.mutated(message), isWaitedFor: false)) }
        }
        let by: Flow.Transport = transport == .tcp ? .tcp : .udp
        let patience = Duration.seconds(fraction: wait ?? 0.5)
        let endpoint = SIPEndpoint(TortureProbe(items, to: peer, by: by, patience: patience)) { _ in .failure }
        guard let source = await SourceAddress.towards(peer) else {
            throw ToolFailure("There is no way to \(peer). Check the network.")
        }
        do {
            _ = try await endpoint.open(at: source.with(port: by == .udp ? 5060 : 0), [by])
        } catch {
            StandardError.write("Note: port 5060 is taken here; answers to messages without rport are not seen.\n")
            _ = try await endpoint.open(at: source, [by])
        }
        await endpoint.perform { probe, now in probe.begin(at: now) }
        let watch = Task {
            await Interruption.wait()
            await endpoint.close()
        }
        for await event in endpoint.events {
            guard event.index >= 0 else {
                if event.isAlive { continue }
                watch.cancel()
                await endpoint.close()
                throw ToolFailure("Nothing answers OPTIONS at \(peer). Is somebody listening there, by --transport?")
            }
            let (file, change) = event.index.quotientAndRemainder(dividingBy: mutations + 1)
            if change == 0 { score.add(expectations[file], messages[file], event) } else { score.addMutation(event) }
            if event.index + 1 == items.count { break }
        }
        watch.cancel()
        await endpoint.close()
    }
}
