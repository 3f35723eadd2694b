import LocalMessagingTesting
import NIOCore
import Testing

@testable import LocalMessaging
@testable import LocalMessagingTesting

struct ConnectionHandlerDescriptorsTests {
    private let network = InProcessNetwork()

    /// What the server of a client does before its stream ends.
    enum Loss: CaseIterable {
        /// Its socket for descriptors is closed with some unread.
        case socket
        /// It takes no connection for descriptors any more.
        case listener
    }

    @Test(arguments: Loss.allCases, [true, false])
    func `a peer that is gone is told by its stream, not by its descriptors`(
        loss: Loss,
        isInOrder: Bool
    ) async throws {
        let transport = InProcessTransport(network: network, side: InProcessSide(on: network.eventLoop))
        let (accepted, changes) = (Record<RawPeer>(), Record<String>())
        let listener = try await RawPeer.serve("core", over: transport) { accepted.add($0) }
        async let connecting = MessageClient.connect(
            to: "core",
            over: transport,
            handlers: MessageHandlers(),
            configuration: MessagingConfiguration(),
            waitingForServer: nil,
            reconnection: .backingOff,
            changed: { changes.add("\($0)") }
        )
        let peer = await accepted.values(1)[0]
        let token = String(repeating: "00", count: AttachmentListener.tokenByteCount)
        try await peer.welcome(accepting: [Note.messageType, Sum.messageType], token: token)
        let client = try await connecting
        let attachments = Attachments(files: [try OpenFile(readingFrom: "/dev/null")])
        switch loss {
        case .socket:
            try await client.send(Note(text: "taken"), attachments: attachments)
            _ = await peer.frames.values(3)
            _ = listener.acceptAttachments { _, _, _ in }
        case .listener: await listener.close()
        }
        let request = Task { try await client.request(Sum(terms: [])) }
        _ = await peer.frames.values(loss == .socket ? 4 : 2)
        try await client.send(Note(text: "not taken"), attachments: attachments)
        if isInOrder { try await peer.send(Frame(.goodbye)) }
        await peer.close()
        let reason = isInOrder ? Invalidation.closedByPeer : .peerDied
        await #expect(throws: MessagingError.invalidated(reason)) { try await request.value }
        #expect(await changes.values(1)[0] == "\(MessageClient.Change.interrupted(reason))")
        await client.close()
        await listener.close()
    }
}
