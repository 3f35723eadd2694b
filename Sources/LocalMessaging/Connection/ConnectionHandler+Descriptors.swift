import Glibc
import NIOCore

/// Descriptors, which come and go through a socket of their own.
extension ConnectionHandler {
    /// Descriptors that the peer had no room for are tried again after this.
    private static var attachmentRetry: TimeAmount { .milliseconds(1) }

    func receiveFiles(_ count: Int) -> [OpenFile]? {
        guard let attachments else {
            end(.violation("descriptors before a socket for them."))
            return nil
        }
        switch attachments.receive(for: receivedCount) {
        case .done(let files) where files.count == count:
            receivedCount += 1
            return files
        case .failed(let why): end(.system("descriptors could not be received: \(why)."))
        case .done, .later, .gone, .broken: end(.violation("descriptors that did not come with their message."))
        }
        return nil
    }

    /// Passes a frame's descriptors; false when the frame has to wait.
    func passFiles(of frame: OutgoingFrame) -> Bool {
        guard let context else { return false }
        if attachments == nil {
            switch role {
            case .client: openAttachments()
            case .server:
                guard !hasAskedForAttachments else { return false }
                hasAskedForAttachments = true
                write(Frame(.openAttachments))
                return false
            }
        }
        switch attachments?.pass(frame.files, for: passedCount) {
        case .done:
            passedCount += 1
            return true
        case .later: retrySoon(on: context.eventLoop)
        // It waits for the end of the stream, which has the reason and perhaps answers that came before it.
        case .gone: break
        case .failed(let why), .broken(let why): end(.system("descriptors could not be passed: \(why)."))
        case nil: break
        }
        return false
    }

    private func retrySoon(on eventLoop: any EventLoop) {
        guard !isRetryScheduled else { return }
        isRetryScheduled = true
        eventLoop.assumeIsolated().scheduleTask(in: Self.attachmentRetry) {
            self.isRetryScheduled = false
            guard !self.isOver else { return }
            if self.mustOpenAttachments { self.openAttachments() }
            self.writeBacklog()
        }
    }

    /// A client's half of making the socket for descriptors.
    func openAttachments() {
        mustOpenAttachments = false
        guard let context, attachments == nil, case .client(let name) = role, let token = introduction?.token else {
            return
        }
        var bytes: [UInt8] = []
        var digits = Substring(token)
        while let byte = UInt8(digits.prefix(2), radix: 16) {
            bytes.append(byte)
            digits = digits.dropFirst(2)
        }
        switch transport.connectAttachments(to: name, token: bytes) {
        case .done(let socket):
            attachments = socket
            write(Frame(.attachmentsOpen))
        case .later:
            mustOpenAttachments = true
            retrySoon(on: context.eventLoop)
        case .gone: break
        case .failed(let why), .broken(let why):
            end(.system("no socket for descriptors could be connected: \(why)."))
        }
    }

    /// A server's half.
    func acceptOpenedAttachments() {
        let refusal = attachments == nil ? acceptAttachments() : nil
        if attachments == nil, let refusal {
            return end(.system("a connection for descriptors could not be accepted: \(refusal)."))
        }
        guard attachments != nil else { return end(.violation("no connection for descriptors was made.")) }
        writeBacklog()
    }

    /// Takes the socket of a client that said this connection's token.
    func take(_ socket: AttachmentSocket, from process: pid_t) {
        if attachments == nil, process == peer?.process { attachments = socket }
    }
}
