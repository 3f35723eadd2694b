internal import CallBasics
import ArgumentParser
internal import CLinux
import CallCore
internal import FoundationEssentials
internal import Glibc
import LocalMessaging
import SharedPhone

/// Delivers a push, as the system does.
struct SIPPushCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "push",
        abstract: "Delivers one push to a group, as the system does.",
        discussion: """
            The payload is JSON, as a push service delivers it: "call-id", "from-uri" and "display-name", or the same with _, also \
            within "aps"; or the last of the lines that `sip server --push-log` writes. A push of a call goes to the core that \
            takes calls, which shows it at once; where none runs, one is started: `core main --calls`, or --launch, such as \
            `core calls`, which ends with its call. A push of a text, or of an invitation with "chat-room-addr", does what \
            `core notify` does. A push of a call that leads to none that is shown is the event "fault", and fails.

            EXAMPLES
              media-tool sip push --group /tmp/group --payload push.json
              media-tool sip push --group /tmp/group --payload push.json --launch 'media-tool core calls --group /tmp/group'
              media-tool sip push --group /tmp/group --payload - --kind text
            """
    )

    /// What a push is about.
    enum Kind: String, ExpressibleByArgument, CaseIterable { case call, text }

    @OptionGroup var place: GroupOption

    @Option(help: ArgumentHelp("What the push says; - reads standard input.", valueName: "file"), completion: .file())
    var payload: String

    @Option(
        help: "What it is about: call or text. Default: what a line of the server says, else text of a room, else call."
    )
    var kind: Kind?

    @Option(
        help: ArgumentHelp("What takes calls of the group, where nothing does; run by the shell.", valueName: "command")
    )
    var launch: String?

    @OptionGroup var common: CommonOptions

    func validate() throws {
        guard launch == nil || kind != .text else {
            throw ValidationError("'--launch' takes calls. Leave it out, or '--kind text'.")
        }
    }

    func run() async throws {
        let begin = ContinuousClock.now
        let bytes = try TextFile.read(InputPath.path(of: payload), limit: 1 << 16)
        let (push, told) = try read(bytes)
        let group = try place.container()
        guard (kind ?? told ?? (push.room == nil ? .call : .text)) == .call else {
            return try await notify(push, group)
        }
        common.startLogging()
        let screen: ScreenClient
        if let running = try? await ScreenClient.connect(to: group, isScreen: false) {
            screen = running
        } else {
            try start(group)
            screen = try await ScreenClient.connect(to: group, waitingForCore: .seconds(10), isScreen: false)
        }
        let call = try await screen.receive(push)
        await screen.close()
        let waited = (ContinuousClock.now - begin).milliseconds
        guard let call else {
            if common.json { common.show(["event": "fault", "what": "unreported"], text: "") }
            throw ToolFailure.reported("The push led to no call that is shown. Too many wait already.")
        }
        common.show(
            [
                "event": "reported", "uuid": .string("\(call)"), "callID": JSONValue(push.callID),
                "afterMs": .number(waited),
            ],
            text: "\(call) is shown after \(waited) ms\n"
        )
    }

    /// What the push says, and what it is about where it says that.
    private func read(_ bytes: [UInt8]) throws -> (push: PushPayload, kind: Kind?) {
        if let push = try? JSONDecoder().decode(PushPayload.self, from: Data(bytes)) { return (push, nil) }
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        guard let words = lines.last?.split(separator: " "), words.first == "PUSH" else {
            throw ToolFailure("\(payload) is no payload. Write {\"call-id\": \"...\"}.")
        }
        func value(_ name: String) -> String? {
            words.first { $0.hasPrefix("\(name)=") }.map { String($0.dropFirst(name.utf8.count + 1)) }
        }
        return (PushPayload(callID: value("callid"), from: value("from")), value("method") == "INVITE" ? .call : .text)
    }

    private func notify(_ push: PushPayload, _ group: GroupContainer) async throws {
        // Others chose them: they may begin with a dash.
        guard let named = push.room.map({ "--room=\($0)" }) ?? push.callID.map({ "--call-id=\($0)" }) else {
            throw ToolFailure("The push does not say which text. Give it a \"call-id\".")
        }
        let words = ["--group", group.path, named] + (common.json ? ["--json"] : [])
        try await CoreNotifyCommand.parse(words).run()
    }

    /// Starts what takes calls; it goes on when this has ended.
    private func start(_ group: GroupContainer) throws {
        let own = ["/proc/self/exe", "core", "main", "--group", group.path, "--calls"]
        let words = launch.map { ["/bin/sh", "-c", $0] } ?? own
        var arguments = words.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        let result = linux_start_detached(words[0], &arguments)
        guard result == 0 else {
            throw ToolFailure("\(words[0]) could not be started: \(String(cString: strerror(-result))).")
        }
    }
}
