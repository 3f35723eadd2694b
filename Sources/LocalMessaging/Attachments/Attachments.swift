/// What goes with a message and through no encoder.
public struct Attachments: Sendable {
    /// The most open files of a message, one fewer when its blob is passed as memory.
    public static let maximumFileCount = AttachmentSocket.maximumDescriptorCount

    /// Bytes.
    public var blob: Blob?
    /// Open files.
    public var files: [OpenFile]

    /// A blob, open files, or both.
    public init(blob: Blob? = nil, files: [OpenFile] = []) {
        self.blob = blob
        self.files = files
    }

    /// No attachments.
    public static var none: Attachments { Attachments() }
}
