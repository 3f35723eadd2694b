internal import Glibc
import LocalMessaging

/// What `group send` sends and `group serve` passes on.
struct GroupMessage: LocalMessage {
    static let messageType = MessageType(name: "media-tool.message")

    let body: JSONValue
}

/// What `group send --request` sends.
struct GroupRequest: LocalRequest {
    typealias Reply = JSONValue
    static let messageType = MessageType(name: "media-tool.request")

    let body: JSONValue
}

/// A message as it is printed: what came, and from whom by the kernel's word.
struct PrintedMessage {
    private let kind: String
    private let body: JSONValue
    private let topic: String
    private let peer: PeerIdentity
    private let blobByteCount: Int?
    private let files: [AttachedFile]

    init(_ kind: String, _ body: JSONValue, _ context: MessageContext) {
        self.kind = kind
        self.body = body
        topic = context.topic
        peer = context.connection.peer
        blobByteCount = context.attachments.blob?.count
        files = context.attachments.files.map(AttachedFile.init)
    }

    /// The message with the keys that scripts rely on.
    var json: JSONValue {
        [
            "kind": .string(kind),
            "pid": .integer(Int(peer.process)),
            "uid": .integer(Int(peer.user)),
            "executable": JSONValue(peer.executable),
            "topic": topic.isEmpty ? .null : .string(topic),
            "body": body,
            "blobBytes": blobByteCount.map { .integer($0) } ?? .null,
            "files": .array(files.map(\.json)),
        ]
    }

    /// The message as a line of text.
    var text: String {
        var line = "\(kind) from \(peer.description.printable)"
        if !topic.isEmpty { line += ", topic \(topic.printable)" }
        line += ": \(body.text)"
        if let blobByteCount { line += ", blob of \(blobByteCount) bytes" }
        for file in files { line += ", \(file.text)" }
        return line + "\n"
    }
}

/// What an open file that came with a message says of itself; its name is not among that.
private struct AttachedFile {
    private let kind: String
    private let byteCount: Int
    private let access: String

    init(_ file: OpenFile) {
        var status = stat()
        fstat(file.descriptor, &status)
        kind =
            switch status.st_mode & S_IFMT {
            case S_IFREG: "file"
            case S_IFDIR: "directory"
            case S_IFIFO: "pipe"
            case S_IFSOCK: "socket"
            default: "device"
            }
        byteCount = Int(status.st_size)
        access =
            switch fcntl(file.descriptor, F_GETFL) & O_ACCMODE {
            case O_RDONLY: "read"
            case O_WRONLY: "write"
            default: "read and write"
            }
    }

    var json: JSONValue { ["kind": .string(kind), "bytes": .integer(byteCount), "access": .string(access)] }

    var text: String { "\(kind) of \(byteCount) bytes to \(access)" }
}
